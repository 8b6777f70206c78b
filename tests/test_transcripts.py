"""Every transcript is played against the real serving loop; see tests/transcripts.py for the format."""

from pathlib import Path
from typing import Any

import pytest

from shared.extensions.tasks import experimental, extension
from tests.transcript_files import FOLDER, Transcript, transcripts
from tests.transcripts import play


def cases() -> list[Any]:
    return [
        pytest.param(
            path, version, id=f"{path.relative_to(FOLDER).with_suffix('')}{f'@{version}' if version else ''}"
        )
        for path in transcripts()
        for version in Transcript.read(path).versions
    ]


@pytest.fixture(autouse=True)
def times_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One time that all tasks tell."""
    for form in (experimental, extension):
        monkeypatch.setattr(form, "iso", lambda _seconds: "2026-07-28T12:00:00.000Z")


@pytest.mark.parametrize(("path", "version"), cases())
async def test_transcript(path: Path, version: str | None, request: pytest.FixtureRequest) -> None:
    await play(Transcript.read(path), version, update=request.config.getoption("--update-transcripts"))


STANDARD = [case for case in cases() if "dialect" not in Transcript.read(case.values[0]).options]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "version"), STANDARD)
async def test_no_byte_differs_where_a_server_has_dialects(path: Path, version: str | None) -> None:
    transcript = Transcript.read(path)
    assert await play(transcript, version, dialects=True) == await play(transcript, version, dialects=False)


HEAD = "# A test of the player.\napp: basic\nversion: 2025-11-25\n\n"
PING = '--> {"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
PONG = '<-- {"jsonrpc": "2.0", "id": 1, "result": {}}\n'


async def played(folder: Path, text: str, version: str = "2025-11-25", *, update: bool = False) -> str:
    path = folder / "case.txt"
    path.write_text(HEAD + text)
    await play(Transcript.read(path), version, update=update)
    return path.read_text().removeprefix(HEAD)


async def test_the_player_accepts_what_happens(tmp_path):
    await played(tmp_path, PING + PONG)


async def test_the_player_refuses_another_answer(tmp_path):
    with pytest.raises(AssertionError):
        await played(tmp_path, PING + PONG.replace("{}", '{"extra": 1}'))


async def test_the_player_refuses_an_answer_that_is_not_in_the_file(tmp_path):
    with pytest.raises(AssertionError, match="also says"):
        await played(tmp_path, PING)


async def test_the_player_refuses_an_answer_where_there_should_be_none(tmp_path):
    with pytest.raises(AssertionError, match="also says"):
        await played(tmp_path, PING + "<-- nothing\n")


async def test_the_player_refuses_silence_where_an_answer_should_be(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.transcripts.PATIENCE", 0.01)
    with pytest.raises(TimeoutError):
        await played(tmp_path, PONG)


async def test_an_update_writes_down_what_happens(tmp_path):
    assert await played(tmp_path, PING, update=True) == PING + PONG


async def test_an_update_writes_down_silence(tmp_path):
    silent = '--> {"jsonrpc": "2.0", "method": "notifications/anything"}\n'
    assert await played(tmp_path, silent + PONG, update=True) == silent + "<-- nothing\n"


def test_a_line_of_no_kind_is_refused(tmp_path):
    path = tmp_path / "case.txt"
    path.write_text(HEAD + "-> typing error\n")
    with pytest.raises(ValueError, match=r"case.txt:5"):
        Transcript.read(path)

"""Every transcript, played against the real serving loop; see tests/transcripts.py for the format."""

from pathlib import Path

import pytest

from shared.extensions.tasks import runner
from tests.transcript_files import FOLDER, Transcript, transcripts
from tests.transcripts import play

each = pytest.mark.parametrize("path", transcripts(), ids=lambda path: str(path.relative_to(FOLDER).with_suffix("")))


@pytest.fixture(autouse=True)
def times_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets one time for all tasks: no option of a server sets their clock."""
    monkeypatch.setattr(runner, "format_time", lambda _seconds: "2026-07-28T12:00:00.000Z")


@each
async def test_transcript(path: Path, request: pytest.FixtureRequest) -> None:
    """Plays it under each of its versions; failures name the version."""
    update = request.config.getoption("--update-transcripts")
    wrong: list[Exception] = []
    for version in Transcript.read(path).versions:
        try:
            await play(Transcript.read(path), version, update=update)
        except (AssertionError, TimeoutError) as error:
            error.add_note(f"version: {version}")
            wrong.append(error)
    if wrong:
        raise ExceptionGroup(str(path), wrong)


@pytest.mark.slow
@each
async def test_dialects_change_no_byte_of_other_transcripts(path: Path) -> None:
    transcript = Transcript.read(path)
    for version in transcript.versions if "dialect" not in transcript.options else ():
        assert await play(transcript, version, dialects=True) == await play(transcript, version, dialects=False)


HEAD = "# A test of the player.\napp: basic\nversion: 2025-11-25\n\n"
PING = '--> {"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
PONG = '<-- {"jsonrpc": "2.0", "id": 1, "result": {}}\n'


@pytest.mark.parametrize("text", [PING + PONG.replace("{}", '{"extra": 1}'), PING, PING + "<-- nothing\n"])
async def test_the_player_rejects_unexpected_answers(text: str, tmp_path: Path) -> None:
    path = tmp_path / "case.txt"
    path.write_text(HEAD + text)
    with pytest.raises(AssertionError):
        await play(Transcript.read(path), "2025-11-25")
    path.write_text(HEAD + PING + PONG)
    await play(Transcript.read(path), "2025-11-25")

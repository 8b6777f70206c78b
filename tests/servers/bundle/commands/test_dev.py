"""`dev`: a server in one file, which restarts after each change."""

import os
import sys
from pathlib import Path

import anyio
import pytest

from servers.bundle.commands.dev import add_options, find_server, load_module, main, serve, watched_folders
from shared.client.connect import connect_http
from shared.errors import PeerError
from tests.ports import free_port
from tests.raw import Raw

SOURCE = '''
import time

from pydantic import BaseModel

from shared import Context, Implementation, Server


class Settings(BaseModel):
    """The options."""

    sides: int = 6


app = Server[None](Implementation(name="dice", version="1.0.0"), settings=Settings)


@app.tool
async def roll(ctx: Context[None]) -> int:
    """Roll a die."""
    time.sleep(0.5)
    return ctx.settings.sides - 2


@app.tool
async def drop(ctx: Context[None]) -> int:
    """Drop a die."""
    raise KeyError("the die")
'''


@pytest.fixture
def dice(tmp_path: Path) -> Path:
    file = tmp_path / "dice.py"
    file.write_text(SOURCE)
    return file


def read_until(process: Raw, text: str) -> str:
    """Returns the first line on stderr that contains `text`."""
    assert process.process.stderr is not None
    return next(line for line in map(bytes.decode, process.process.stderr) if text in line)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_dev_reports_faults_and_serves_each_saved_change(dice: Path) -> None:
    (dice.parent / "rules").mkdir()
    (dice.parent / "rules" / "sides.py").touch()
    port = free_port()
    command = [sys.executable, "-m", "servers", "dev", str(dice), "--no-browser", "--", "--sides", "20"]
    with Raw(command, env={**os.environ, "MCP_PORT": str(port)}) as process:
        read_until(process, "the workbench is at")
        async with connect_http(f"http://127.0.0.1:{port}/dice/mcp") as client:
            assert (await client.call_tool("roll")).structured_content == 18
            assert await anyio.to_thread.run_sync(read_until, process, "the event loop has been blocked")
            assert "in roll" in await anyio.to_thread.run_sync(read_until, process, "dice.py")
            with pytest.raises(PeerError, match="internal error"):
                await client.call_tool("drop")
            assert await anyio.to_thread.run_sync(read_until, process, "KeyError: 'the die'")
        dice.write_text("a mistake")
        assert await anyio.to_thread.run_sync(read_until, process, "SyntaxError")
        dice.write_text('sides = int("six")')
        assert await anyio.to_thread.run_sync(read_until, process, 'dice.py", line 1')
        assert await anyio.to_thread.run_sync(read_until, process, "ValueError: invalid literal")
        (dice.parent / "rules" / "sides.py").write_text("a mistake")
        assert await anyio.to_thread.run_sync(read_until, process, "ValueError: invalid literal")
        dice.write_text(SOURCE.replace("sides - 2", "sides - 1"))
        await anyio.to_thread.run_sync(read_until, process, "the workbench is at")
        async with connect_http(f"http://127.0.0.1:{port}/dice/mcp") as client:
            assert (await client.call_tool("roll")).structured_content == 19
        process.process.terminate()
        assert process.wait() == 0


def test_an_unknown_argument_of_the_file_is_named(
    dice: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    # Set first, so that the imported module is removed at the end: other tests have a module of that name.
    monkeypatch.setitem(sys.modules, "dice", sys)
    del sys.modules["dice"]
    with pytest.raises(SystemExit, match="2"):
        serve("dev", dice, ["--side", "20"], browse=False)
    assert capsys.readouterr().err == "dice.py: unrecognized arguments: --side 20; did you mean --sides?\n"


@pytest.mark.parametrize(("option", "shown"), [("--help", "--sides"), ("--version", "dice")])
def test_dev_ends_after_the_help_of_the_file(
    option: str, shown: str, dice: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "dice", sys)
    del sys.modules["dice"]
    with pytest.raises(SystemExit) as ended:
        main([str(dice), "--", option])
    assert not ended.value.code
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ([], ["--host=x"]),
        (["a", "--host=y"], ["a", "--host=y", "--host=x"]),
        (["--", "-b"], ["--host=x", "--", "-b"]),
    ],
)
def test_options_of_dev_override_the_arguments(given: list[str], passed: list[str]) -> None:
    assert add_options(given, ["--host=x"]) == passed


def test_only_nearby_folders_with_python_files_are_watched(dice: Path) -> None:
    (dice.parent / "rules" / "deep").mkdir(parents=True)
    (dice.parent / "rules" / "deep" / "sides.py").touch()
    (dice.parent / "rules" / "sides.py").touch()
    (dice.parent / "pictures").mkdir()
    assert watched_folders(dice) == {dice.parent, dice.parent / "rules"}


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path / "no.py")])
    assert capsys.readouterr().err.endswith(f" dev: there is no file {tmp_path / 'no.py'}\n")


@pytest.mark.parametrize("name", ["notes.txt", "my.dice.py"])
def test_a_file_that_python_cannot_import_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).touch()
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path / name)])
    assert f"dev: Python can't import {name}: name it NAME.py" in capsys.readouterr().err


def test_a_file_that_exits_on_import_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "runs_at_once.py").write_text("raise SystemExit(0)")
    with pytest.raises(SystemExit, match="2"):
        serve("dev", tmp_path / "runs_at_once.py", [], browse=False)
    assert capsys.readouterr().err.startswith(
        "dev: runs_at_once.py ends the program when it is imported: put `run(app)` under "
    )


@pytest.mark.parametrize(
    ("name", "source", "reason"),
    [
        ("none_here", "", "^none_here.py has 0 servers: declare one, as in `app = Server"),
        ("json", "", "^Python already has a module named 'json': give the file another name$"),
        ("time", "", "^Python already has a module named 'time': give the file another name$"),  # of no file
    ],
)
def test_a_file_without_a_server_is_refused(
    name: str, source: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / f"{name}.py").write_text(source)
    with pytest.raises(ValueError, match=reason):
        find_server(load_module(tmp_path / f"{name}.py"), tmp_path / f"{name}.py")

"""A session with a server at a URL, from the command line: its token, calls that become tasks of the server, and what
there is no connection to."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from servers.bundle.program import main
from tests.raw import ROOT
from tests.servers.bundle.commands.test_connect import TOKEN, token, url
from tests.servers.bundle.refusals import refused

__all__ = ["token", "url"]


@pytest.fixture
def sent(token: str) -> tuple[str, str]:
    """Returns the arguments that send the token of that server from a file."""
    return "--token-file", token


@pytest.mark.slow
def test_tokens_are_sent_from_files_variables_and_headers(
    url: str, sent: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header may have any name."""
    assert main(["call", url, "echo", "text=hi", *sent]) == 0
    assert capsys.readouterr().out == "hi\n"
    monkeypatch.setenv("TOKEN", TOKEN)
    assert main(["read", url, "test://static-text", "--token-variable", "TOKEN", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["contents"]
    assert main(["read", url, "test://static-text", "--header", f"X-API-Key: {TOKEN}"]) == 0


@pytest.mark.slow
def test_a_missing_token_is_reported_with_a_hint(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["inspect", url]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"python -m servers inspect: {url} refused the request: HTTP 401: ")
    assert error.endswith("; send a token with --token-file or --token-variable, or run `login`\n")
    # The hint is only for requests without a token.
    monkeypatch.setenv("TOKEN", "another")
    assert main(["inspect", url, "--token-variable", "TOKEN"]) == 1
    assert "--token-file" not in capsys.readouterr().err


def test_an_unreachable_url_gives_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "http://127.0.0.1:9/mcp"]) == 3
    assert "no connection to http://127.0.0.1:9/mcp: Connection refused" in capsys.readouterr().err


@pytest.mark.slow
def test_a_call_waits_for_its_task(url: str, sent: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", url, "failing_job", *sent]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("python -m servers call: task working")
    assert shown.err.endswith("the job has failed\n")
    assert main(["call", url, "--task", "none", *sent]) == 1
    assert "the server no longer has this task" in capsys.readouterr().err


@pytest.mark.slow
def test_a_detached_call_can_be_awaited_later(
    url: str, sent: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["call", url, "slow_compute", "seconds=1", "label=tea", "--detach", "--json", *sent]) == 0
    id_ = json.loads(capsys.readouterr().out)["taskId"]
    assert main(["call", url, "--task", id_, *sent]) == 0
    assert capsys.readouterr().out == "tea took 1 seconds.\n"
    # An immediate answer is printed.
    assert main(["call", url, "greet", "name=Ada", "--detach", *sent]) == 0
    shown = capsys.readouterr()
    assert shown.out == "Hello, Ada!\n"
    assert "did not run the call as a task" in shown.err
    # Its links are saved as well.
    assert main(["call", url, "all_content", "--detach", "--out", str(tmp_path / "a"), *sent]) == 0
    assert b"static text" in b"".join(path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no Ctrl+C for one process")
def test_ctrl_c_does_not_cancel_the_task_of_another_call(
    url: str, sent: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["call", url, "slow_compute", "seconds=3600", "--detach", *sent]) == 0
    command = [sys.executable, "-m", "servers", "call", url, "--task", capsys.readouterr().out.strip(), *sent]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        assert waiting.stderr.readline().startswith("python -m servers call: task working")
        waiting.send_signal(signal.SIGINT)
        assert "the task continues" in waiting.stderr.read()
    assert waiting.returncode == 130


NOBODY = "http://127.0.0.1:9/mcp"


REFUSED = [
    (["inspect", NOBODY, "--header", "a"], "--header takes NAME:VALUE"),
    (["inspect", NOBODY, "--token-variable", "NOT_SET_HERE"], "--token-variable: NOT_SET_HERE is empty or not set"),
    (["inspect", NOBODY, "--token-file", "/nowhere"], "--token-file: /nowhere: No such file or directory"),
    (["inspect", NOBODY, "--header", "a b:c"], "not the name of an HTTP header that can be set: 'a b'"),
    (["inspect", NOBODY, "--env", "A=b"], "a server with a URL is started elsewhere: set its arguments and"),
    (["call", "everything", "greet", "--detach"], "so do its tasks: specify a URL"),
    (["call", "everything", "--task", "one"], "so do its tasks: specify a URL"),
    (["call", "everything"], "specify a TOOL, or --task ID instead"),
    (["call", NOBODY, "greet", "--task", "one"], "specify a TOOL, or --task ID instead"),
    (["call", NOBODY, "--task", "one", "--detach"], "it takes neither arguments nor --detach"),
]


def test_wrong_usage_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert [words for words, why in REFUSED if why not in refused(capsys, main, *words)] == []


FAILING = """
import sys
sys.path.insert(0, {root!r})
from shared import Context, Implementation, Server
from shared.program.run import run
app = Server[None](Implementation(name="notes", version="1"))
@app.tool
def fail() -> str:
    "Fail."
    raise ValueError("what only its author sees")
@app.error(KeyError)
def translate(error: KeyError) -> str:
    return "none"
@app.tool
def find() -> str:
    "Find."
    raise KeyError("a")
@app.tool
async def act(ctx: Context[None]) -> str:
    "Act."
    ctx.confirm("Act?")
    return "done"
run(app)
"""


@pytest.mark.slow
def test_an_internal_error_of_a_started_server_shows_its_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "notes.py"
    program.write_text(FAILING.format(root=str(ROOT)))
    assert main(["call", "-", "fail", "--", sys.executable, str(program)]) == 1
    first, second, *_, last = capsys.readouterr().err.splitlines()
    assert first.endswith(" refused the request: internal error")
    assert second == "Traceback (most recent call last):"
    assert last == "ValueError: what only its author sees"
    assert main(["call", "-", "find", "--", sys.executable, str(program)]) == 1
    *_, error, last = capsys.readouterr().err.splitlines()
    assert (error, last) == (
        "KeyError: 'a'",
        "the @error function for KeyError returned 'none', not an error such as ToolError",
    )
    assert main(["call", "-", "act", "--", sys.executable, str(program)]) == 1
    assert "ERROR shared.server.dispatch.coroutines: ctx.confirm was not awaited" in capsys.readouterr().err

"""Calls that become tasks of a server at a URL, from the command line."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.bundle.program import main

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server with tools that run as tasks."""
    command = [sys.executable, "-m", "servers.everything", "--transport", "http", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        yield server.stderr.readline().removeprefix("listening on ").strip()
        server.terminate()


@pytest.mark.slow
def test_a_call_waits_for_its_task(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", url, "failing_job"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("python -m servers call: task working")
    assert shown.err.endswith("the job has failed\n")


@pytest.mark.slow
def test_a_detached_call_is_waited_for_later(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", url, "slow_compute", "seconds=1", "label=tea", "--detach", "--json"]) == 0
    id_ = json.loads(capsys.readouterr().out)["taskId"]
    assert main(["call", url, "--task", id_]) == 0
    assert capsys.readouterr().out == "tea took 1 seconds.\n"


@pytest.mark.slow
def test_what_is_answered_at_once_is_shown(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", url, "greet", "name=Ada", "--detach"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "Hello, Ada!\n"
    assert "made no task of it" in shown.err


@pytest.mark.slow
def test_a_task_that_the_server_does_not_know_is_an_error(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", url, "--task", "none"]) == 1
    assert "the server has no such task any more" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no Ctrl+C for one process")
def test_ctrl_c_leaves_the_task_of_another_call_at_work(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", url, "slow_compute", "seconds=3600", "--detach"]) == 0
    command = [sys.executable, "-m", "servers", "call", url, "--task", capsys.readouterr().out.strip()]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        assert waiting.stderr.readline().startswith("python -m servers call: task working")
        waiting.send_signal(signal.SIGINT)
        assert "the task works on" in waiting.stderr.read()
    assert waiting.returncode == 130


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["everything", "greet", "--detach"], "its tasks with it: give a URL"),
        (["everything", "--task", "one"], "its tasks with it: give a URL"),
        (["everything"], "takes a TOOL, or --task ID in its place"),
        (["http://127.0.0.1:9/mcp", "greet", "--task", "one"], "takes a TOOL, or --task ID in its place"),
        (["http://127.0.0.1:9/mcp", "--task", "one", "--detach"], "it takes neither arguments nor --detach"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["call", *words])
    assert why in capsys.readouterr().err

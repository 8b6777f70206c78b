"""A server at a URL, from the command line: its token, and what there is no connection to."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.bundle.program import main

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "a-token-of-the-test"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that wants a token."""
    command = [sys.executable, "-m", "servers.everything", "--transport", "http", "--port", "0"]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "MCP_TOKEN": TOKEN}, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        yield server.stderr.readline().removeprefix("listening on ").strip()
        server.terminate()


@pytest.mark.slow
def test_a_token_is_sent_from_a_file(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert main(["call", url, "echo", "text=hi", "--token-file", str(tmp_path / "token")]) == 0
    assert capsys.readouterr().out == "hi\n"


@pytest.mark.slow
def test_a_header_and_a_token_of_a_variable_are_sent(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKEN", TOKEN)
    assert main(["read", url, "test://static-text", "--token-variable", "TOKEN", "--json"]) == 0
    assert main(["read", url, "test://static-text", "--header", f"X-API-Key: {TOKEN}"]) == 0
    assert json.loads(capsys.readouterr().out.partition("\n}\n")[0] + "}")["contents"]


@pytest.mark.slow
def test_without_its_token_there_is_no_connection(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", url]) == 3
    said = capsys.readouterr().err
    assert said.startswith(f"python -m servers inspect: no connection to {url}: ")
    assert said.endswith("; --token-file or --token-variable has a token sent, and `login` logs in\n")


@pytest.mark.slow
def test_who_has_sent_a_token_is_not_told_to_send_one(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKEN", "another")
    assert main(["inspect", url, "--token-variable", "TOKEN"]) == 3
    assert "--token-file" not in capsys.readouterr().err


def test_where_nobody_listens_there_is_no_connection(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "http://127.0.0.1:9/mcp"]) == 3
    assert "no connection to http://127.0.0.1:9/mcp: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--header", "a"], "--header takes NAME:VALUE"),
        (["--token-variable", "NOT_SET_HERE"], "--token-variable: NOT_SET_HERE is not set"),
        (["--token-file", "/nowhere"], "--token-file: /nowhere: No such file or directory"),
        (["--header", "a b:c"], "not the name of an HTTP header that can be set: 'a b'"),
        (["--env", "A=b"], "a server with a URL is started elsewhere: give it its arguments and variables there"),
    ],
)
def test_what_can_not_be_sent_is_wrong_usage(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: object = main(["inspect", "http://127.0.0.1:9/mcp", *words])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert capsys.readouterr().err.endswith(f": {why}\n")

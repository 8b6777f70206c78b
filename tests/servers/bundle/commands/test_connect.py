"""`connect URL`: a stdio server that forwards to a remote one."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.bundle.commands import connect
from servers.bundle.commands.connect import main
from servers.gateway.proxy.bridge_program import BridgeOptions, BridgeProgram
from servers.gateway.proxy.remote import Remote
from shared.client.connect import connect_stdio
from shared.client.options import ClientOptions
from tests.raw import ROOT, Raw, listening
from tests.servers.bundle.refusals import not_refused
from tests.servers.peers import record

TOKEN = "a-token-of-the-test"
CONNECT = [sys.executable, "-m", "servers", "connect"]
PATIENCE = 60.0


@contextmanager
def everything(**variables: str) -> Iterator[str]:
    """Starts the `everything` server; yields its URL."""
    command = [sys.executable, "-m", "servers.everything", "--transport", "http", "--port", "0"]
    with Raw(command, env={**os.environ, **variables}) as server:
        yield listening(server)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Returns the URL of a server that requires a token."""
    with everything(MCP_TOKEN=TOKEN) as url:
        yield url


@pytest.fixture
def token(tmp_path: Path) -> str:
    """Returns the path of a file with the token of the server."""
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "token").chmod(0o600)
    return str(tmp_path / "token")


def ended(*words: str) -> tuple[int, str]:
    """Runs `connect`; returns its exit code and stderr."""
    done = subprocess.run([*CONNECT, *words], cwd=ROOT, input="", capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == ""
    return done.returncode, done.stderr


async def test_connect_serves_the_server_at_the_url(url: str, token: str) -> None:
    with anyio.fail_after(PATIENCE):
        async with connect_stdio([*CONNECT, url, "--token-file", token], cwd=ROOT) as client:
            assert client.server.info["name"] == "everything"
            assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"


@pytest.mark.slow
async def test_a_handshake_client_gets_only_the_allowed_tools(url: str) -> None:
    """The token comes from the environment, under either name."""
    tools = ("--allow", "ec*", "--allow", "add", "--deny", "add")
    for name, value in (("MCP_CONNECT_TOKEN", TOKEN), ("MCP_CONNECT_HEADER", f"X-API-Key: {TOKEN}")):
        with anyio.fail_after(PATIENCE):
            command, options = [*CONNECT, url, *tools], ClientOptions(mode="handshake")
            async with connect_stdio(command, options, env={name: value}, cwd=ROOT) as client:
                assert not client.stateless
                assert [tool.name for tool in await client.list_tools()] == ["echo"]


@pytest.mark.slow
def test_a_missing_token_ends_connect_with_a_hint(url: str) -> None:
    code, error = ended(url)
    assert (code, error.count("\n")) == (1, 1)
    assert error.startswith(f"python -m servers connect: no connection to {url}: ")
    assert error.endswith("; send a token with --token-file, or run `login`\n")
    # The hint is only for requests without a token.
    code, error = ended(url, "--header", "Authorization=Bearer another")
    assert code == 1
    assert "--token-file" not in error
    assert "another" not in error


@pytest.mark.slow
def test_connect_ends_without_a_listener_or_an_answer(token: str) -> None:
    Path(token).chmod(0o644)
    with socket.socket() as listener:  # bound, which reserves the port, but not listening
        listener.bind(("127.0.0.1", 0))
        place = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        code, stderr = ended(f"{place}?key=hush", "--token-file", token)
        listener.listen()
        silent = ended(place, "--timeout", "0.5")
    assert code == 1
    exposed, error = stderr.splitlines()
    assert f"{token}: other users can read this secret" in exposed
    assert error.startswith(f"python -m servers connect: no connection to {place}: ")
    assert not {"hush", TOKEN} & set(stderr.split())
    assert stderr.count("no connection to") == 1
    assert (silent[0], silent[1].count("\n")) == (1, 1)
    assert silent[1].startswith(f"python -m servers connect: no connection to {place}: ")


REFUSED = [
    ([], "specify exactly one URL, such as https://mcp.example.org/mcp"),
    (["http://a/mcp", "http://b/mcp"], "specify exactly one URL, such as https://mcp.example.org/mcp"),
    (["example.org/mcp"], "the URL of a server must start with http://, https://, ws:// or wss:// and have a host"),
    (["ftp://example.org"], "the URL of a server must start with http://"),
    (["http://"], "the URL of a server must start with http://"),
    (["http://a:99999/mcp"], "the URL of a server must start with http://"),
    (["http://[::1/mcp"], "the URL of a server must start with http://"),
    (["http://ann:hush@a/mcp"], "everyone who sees the URL sees its user name and password: remove the part"),
    (["http://a/mcp", "--token-file", "/nowhere"], "--token-file: /nowhere: No such file or directory"),
    (["http://a/mcp", "--header", "hush"], "--header takes NAME=VALUE"),
    (["http://a/mcp", "--header", "a b=hush"], "not the name of an HTTP header that can be set: 'a b'"),
    (["http://a/mcp", "--header", "a=hush\x00"], "the value of the HTTP header a has characters that can't be sent"),
    (["http://a/mcp", "--timeout", "0"], "--timeout: it must be greater than 0"),
    (["http://a/mcp", "--port", "1"], "unrecognized arguments: --port"),
    (["http://a/mcp", "--log-level", "loud"], "argument --log-level: invalid choice: 'loud'"),
]


def test_unusable_arguments_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert not not_refused(capsys, main, REFUSED)


def test_a_header_is_separated_by_a_colon_or_an_equals_sign() -> None:
    for given in ("X-Key=a=b", "X-Key: a=b", "x-key:a=b"):
        assert Remote.of("http://a/mcp", [given], None).headers == {"x-key": "a=b"}


def test_every_option_reaches_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = record(monkeypatch, connect, "BridgeProgram")
    opened: list[Any] = []
    monkeypatch.setattr(BridgeProgram, "run", lambda _, *given, **more: opened.append((*given, more)))
    (tmp_path / "token").write_text("secret")
    (tmp_path / "token").chmod(0o644)
    options = "--header A=b --allow a --deny b --timeout 4 --max-seconds 5"
    main([*options.split(), "--token-file", str(tmp_path / "token"), "https://a.example/mcp"])
    name, connect_remote, limits, advice = given["BridgeProgram"]
    assert (name, limits, advice) == ("https://a.example/mcp", BridgeOptions(allow=["a"], deny=["b"], timeout=4), "")
    assert connect_remote.args == ("https://a.example/mcp",)
    assert connect_remote.keywords["headers"] == {"authorization": "Bearer secret", "a": "b"}
    ((_, common, more),) = opened
    assert (common.max_seconds, more) == (5, {"exposed": str(tmp_path / "token")})

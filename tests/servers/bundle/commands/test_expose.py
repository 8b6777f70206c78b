"""`expose -- COMMAND`: an HTTP server that forwards to a stdio server."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.bundle.commands import expose
from servers.bundle.commands.expose import main
from servers.gateway.proxy.bridge_program import BridgeOptions, BridgeProgram
from shared.client.client import Client
from shared.client.connect import connect_http
from shared.client.options import ClientOptions
from shared.errors import PeerError
from tests.processes import is_alive
from tests.raw import ROOT, Raw, listening
from tests.servers.bundle.other_server import COMMAND
from tests.servers.bundle.refusals import not_refused
from tests.servers.peers import record

EXPOSE = [sys.executable, "-m", "servers", "expose", "--port", "0"]
PATIENCE = 60.0


@contextmanager
def exposed(*options: str, **variables: str) -> Iterator[tuple[Raw, str]]:
    """Exposes a server that describes its own process; yields the process and its URL."""
    with Raw([*EXPOSE, *options, "--", *COMMAND], env={**os.environ, **variables}) as process:
        yield process, listening(process)


async def pid_of(client: Client) -> int:
    return int((await client.call_tool("pid")).text)


async def value_of(client: Client, variable: str) -> str:
    """Returns the value of a variable of the server's process."""
    known = {sha256(value.encode()).hexdigest(): value for value in ("1", "2", "3", "not set")}
    return known[(await client.call_tool("digest", {"variable": variable})).text]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with exposed() as (_, url):
        yield url


@pytest.mark.parametrize("mode", ["stateless", pytest.param("handshake", marks=pytest.mark.slow)])
async def test_expose_serves_the_server_that_it_started(url: str, mode: str) -> None:
    with anyio.fail_after(PATIENCE):
        async with connect_http(url, ClientOptions(mode=mode)) as client:
            assert client.server.info["name"] == "other"
            assert client.stateless is (mode == "stateless")
            assert await value_of(client, "NOTHING") == "not set"


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
async def test_each_session_has_a_process_unless_it_is_shared(shared: bool, tmp_path: Path) -> None:
    (tmp_path / "tools").write_text('[{"name": "pid", "inputSchema": {"type": "object"}}]')
    old = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "tiny.py"), str(tmp_path / "tools")]
    handshake = ClientOptions(mode="handshake")
    with Raw([*EXPOSE, *(["--shared"] if shared else []), "--", *old]) as process, anyio.fail_after(PATIENCE):
        url = listening(process)
        async with connect_http(url, handshake) as one, connect_http(url, handshake) as other:
            pids = {await pid_of(one), await pid_of(other), await pid_of(one)}
    assert len(pids) == (1 if shared else 2)


@pytest.mark.slow
async def test_the_command_gets_its_variables_and_requests_need_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hush")
    options = ("--env", "ONE=1", "--env", "TWO", "--token-file", str(tmp_path / "token"))
    with exposed(*options, TWO="2", THREE="3") as (_, url), anyio.fail_after(PATIENCE):
        async with connect_http(url, token="hush") as client:
            assert [await value_of(client, name) for name in ("ONE", "TWO", "THREE")] == ["1", "2", "not set"]
        with pytest.raises(PeerError) as refused:
            async with connect_http(url):
                pass
    assert refused.value.code == 401


@pytest.mark.slow
async def test_sigterm_ends_the_command_too() -> None:
    with exposed() as (process, url), anyio.fail_after(PATIENCE):
        async with connect_http(url, ClientOptions(mode="stateless")) as client:
            pid = await pid_of(client)
        assert is_alive(pid)
        process.process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert not is_alive(pid)


@pytest.mark.slow
def test_a_command_that_exits_at_once_ends_expose_with_an_error() -> None:
    """Its stderr goes to the log. It is started twice, since a server may end because it knows only the handshake."""
    command = [*EXPOSE, "--", sys.executable, "-c", "raise SystemExit('no luck')"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    # A separate thread writes the log, so any line may be first.
    name = Path(sys.executable).name
    *logged, error = sorted(lines, key=lambda line: line.startswith("python -m servers expose: "))
    assert [line.endswith(f"{name}: no luck") for line in logged] == [True, True]
    assert error.startswith(f"python -m servers expose: no connection to {name}: ")


REFUSED = [
    ([], "specify the command that starts the server after `--`, such as -- npx -y some-server"),
    (["--", "no-such-program"], "no-such-program: there is no such program"),
    (["--", "README.md"], "README.md: it is not a program"),
    (["--env", "hush hush", "--", "cat"], "--env takes NAME=VALUE, or the NAME of a variable that is set here"),
    (["--env", "NOT_SET_HERE", "--", "cat"], "--env takes NAME=VALUE, or the NAME of a variable that is set here"),
    (["--host", "0.0.0.0", "--", "cat"], "--host 0.0.0.0 is reachable from other machines: set a token"),
    (["--token-file", "/nowhere", "--", "cat"], "--token-file: /nowhere: No such file or directory"),
    (["npx", "-y"], "unrecognized arguments: -y"),
]


def test_unusable_arguments_are_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert not not_refused(capsys, main, REFUSED)


def test_every_option_reaches_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    given = record(monkeypatch, expose, "BridgeProgram")
    opened: list[Any] = []
    monkeypatch.setattr(BridgeProgram, "run", lambda *arguments: opened.append(arguments[1:]))
    monkeypatch.setattr(expose, "log_commands", lambda _: None)
    options = "--shared --processes 3 --env A=1 --allow a --deny b --timeout 4 --max-sessions 5"
    main([*options.split(), "--", sys.executable, "-V"])
    name, connect, limits, *sessions = given["BridgeProgram"]
    assert (name, connect.args, connect.keywords) == (
        Path(sys.executable).name,
        ([sys.executable, "-V"],),
        {"env": {"A": "1"}},
    )
    assert (limits, sessions) == (BridgeOptions(allow=["a"], deny=["b"], timeout=4), [True, 3])
    assert opened[0][1].max_sessions == 5

"""A server as a child process: messages, standard error, environment and termination."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from shared.client.connect import connect_stdio
from shared.client.options import ClientOptions
from shared.contracts import ClosableTransport
from shared.protocol.session.events import Outgoing
from shared.protocol.wire.codec import Codec
from shared.protocol.wire.jsonrpc import Malformed, Notification
from shared.transports.child.process import ProcessStream, start_process
from shared.transports.framed import framed
from tests.processes import is_there

ROOT = Path(__file__).resolve().parents[4]
HELLO = Notification("hello")


def messages(process: ProcessStream) -> ClosableTransport:
    return framed(process, Codec(is_client=True))


def _python(script: str) -> list[str]:
    return [sys.executable, "-S", "-c", script]  # without site-packages, which are slow to load


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.transports.child.process.STEP_SECONDS", 0.05)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.transports.child.process.STEP_SECONDS", 60)


@pytest.mark.usefixtures("patient")
async def test_messages_are_sent_and_received_as_lines() -> None:
    echo = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.flush()"
    with anyio.fail_after(30):
        async with start_process(_python(echo)) as process:
            transport = messages(process)
            await transport.send([Outgoing(HELLO), Outgoing(None), Outgoing(HELLO)])
            received: list[Any] = []
            while len(received) < 2:
                received += await transport.receive()
            assert received == [HELLO, HELLO]
    assert process.exit_code == 0


async def test_non_message_output_is_malformed_and_an_unterminated_last_line_is_read() -> None:
    script = """print("Welcome!\\n\\n" + '{"jsonrpc": "2.0", "method": "hello"}', end="")"""
    with anyio.fail_after(30):
        async with start_process(_python(script)) as process:
            transport = messages(process)
            received = [*await transport.receive(), *await transport.receive()]
            with pytest.raises(anyio.EndOfStream):
                await transport.receive()
    assert isinstance(received[0], Malformed)
    assert received[1:] == [HELLO]


STUBBORN = """
import os, signal, sys, time
{ignore}
print('{{"jsonrpc": "2.0", "method": "hello", "params": {{"pid": %d}}}}' % os.getpid(), flush=True)
while True: time.sleep(1)
"""
ENDS = [("", -signal.SIGTERM), ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", -signal.SIGKILL)]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("ignore", "code"), ENDS)
async def test_termination_escalates_until_the_child_ends(ignore: str, code: int) -> None:
    with anyio.fail_after(30):
        async with start_process(_python(STUBBORN.format(ignore=ignore))) as process:
            [hello] = await messages(process).receive()
            assert isinstance(hello, Notification)
    assert process.exit_code == code
    assert not is_there(hello.params["pid"])


@pytest.mark.usefixtures("impatient")
async def test_a_cancelled_block_terminates_the_child() -> None:
    with anyio.move_on_after(10) as scope:
        async with start_process(_python(STUBBORN.format(ignore=""))) as process:
            await process.receive()
            scope.cancel()
            await anyio.sleep_forever()
    assert process.exit_code == -signal.SIGTERM


async def test_stored_stderr_has_a_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.transports.child.process.MAX_STDERR_BYTES", 10)
    script = "import sys; sys.stderr.write('x' * 1000 + 'the end'); sys.stderr.flush()"
    with anyio.fail_after(30):
        async with start_process(_python(script), stderr="keep") as process:
            with pytest.raises(anyio.EndOfStream):
                await process.receive()
    assert process.stderr == "xxxthe end"


async def test_a_failed_connection_has_a_note_with_the_last_line_of_stderr() -> None:
    with anyio.fail_after(30), pytest.raises(ConnectionError) as refused:
        async with connect_stdio(_python("raise OSError('there is no notes.db')")):
            pass
    assert refused.value.__notes__ == ["last output of the server: OSError: there is no notes.db"]


@pytest.mark.usefixtures("impatient")
async def test_a_silent_server_raises_timeout_error_and_leaves_no_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shared.client.connection.opening.OPENING_SECONDS", 0.1)
    before = _children()
    with anyio.fail_after(30), pytest.raises(TimeoutError, match="did not answer"):
        async with connect_stdio(["sleep", "60"], ClientOptions(probe_seconds=0.1)):
            pass
    assert _children() == before


def _children() -> set[str]:
    return set(Path("/proc/self/task", str(os.getpid()), "children").read_text().split())


@pytest.mark.slow
async def test_a_client_skips_lines_printed_by_a_wrapper(tmp_path: Path) -> None:
    start = f"echo Welcome; printf '\\377{{\\n[]\\n'; exec {sys.executable} -m servers.filesystem {tmp_path}"
    with anyio.fail_after(30):
        async with connect_stdio(["/bin/sh", "-c", start], cwd=ROOT) as client:
            assert str(tmp_path) in str(await client.raw.call_tool("list_allowed_directories"))


async def test_a_missing_command_raises_file_not_found_error() -> None:
    with pytest.raises(FileNotFoundError):
        async with connect_stdio(["no-such-command-here"]):
            pass


async def test_a_server_inherits_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of others")
    monkeypatch.setenv("SHELL", "() { echo run; }")
    script = """
import json, os
print(json.dumps({"jsonrpc": "2.0", "method": "environment", "params": dict(os.environ)}))
"""

    async def environment(env: dict[str, str] | None) -> dict[str, Any]:
        with anyio.fail_after(30):
            async with start_process(_python(script), env=env) as process:
                [message] = await messages(process).receive()
        assert isinstance(message, Notification)
        return dict(message.params)

    inherited = await environment(None)
    assert inherited["PATH"] == os.environ["PATH"]
    assert not {"SECRET", "SHELL"} & set(inherited)
    assert (await environment({"WHO": "me"}))["WHO"] == "me"


async def test_given_environment_variables_are_added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECRET", "of others")
    seen = tmp_path / "seen"
    script = f"import os; open({str(seen)!r}, 'w').write(' '.join(sorted(os.environ)))"
    with anyio.fail_after(30), pytest.raises(ConnectionError):
        async with connect_stdio(_python(script), env={"WHO": "me"}):
            pass
    names = seen.read_text().split()
    assert {"PATH", "WHO"} <= set(names)
    assert "SECRET" not in names


async def test_stderr_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    script = r"import sys; sys.stderr.write('one\n\033[31mtwo\nthe end')"
    with anyio.fail_after(30):
        async with start_process(_python(script)) as process:
            with pytest.raises(anyio.EndOfStream):
                await process.receive()
    name = Path(sys.executable).name
    assert caplog.messages == [f"{name}: one", f"{name}: \\x1b[31mtwo", f"{name}: the end"]


@pytest.mark.slow
async def test_a_stderr_flood_does_not_delay_messages(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    script = """
import sys
sys.stderr.write("flood\\n" * 200_000 + "x" * 10_000_000)
print('{"jsonrpc": "2.0", "method": "hello"}')
"""
    with anyio.fail_after(30):
        async with start_process(_python(script)) as process:
            assert await messages(process).receive() == [HELLO]
    assert len(caplog.messages) < 2_000
    assert max(map(len, caplog.messages)) < 10_000


@pytest.mark.slow
def test_a_stdio_client_loads_no_http_library() -> None:
    script = (
        "import sys, shared.client.connect; "
        "print(sorted({'aiohttp', 'httpx', 'starlette', 'uvicorn', 'websockets'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


LEAVES = """
exec 3>held
sleep 60 &
exec 3>&-
echo '{"jsonrpc": "2.0", "method": "hello"}'
read x
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no process groups")
async def test_descendants_of_a_child_end_with_it(tmp_path: Path) -> None:
    """A descendant inherits the pipes, which therefore do not end with the child."""
    os.mkfifo(tmp_path / "held")
    pipe = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with anyio.fail_after(30):
            async with start_process(["/bin/sh", "-c", LEAVES], cwd=tmp_path, stderr="keep") as process:
                assert await messages(process).receive() == [HELLO]  # the descendant has started
        # The pipe ends when no process has its other side open.
        assert select.select([pipe], [], [], 10)[0] == [pipe]
    finally:
        os.close(pipe)

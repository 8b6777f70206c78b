"""Whatever stands behind 0, 1 and 2: the protocol runs, and nothing else gets into it (PROTOCOL 5.2)."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tty
from pathlib import Path

import pytest

from tests.raw import INITIALIZE, INITIALIZED, SLOW, Raw, call, lines
from tests.wire import PATIENCE

CALLS = lines(INITIALIZE, INITIALIZED, call(1, "echo", text="a"), call(2, "large", size=800_000), call(3, "stray"))


def texts(output: bytes) -> dict[object, str]:
    messages = [json.loads(line) for line in output.splitlines()]
    assert messages.pop(0)["result"]["protocolVersion"]
    return {message["id"]: message["result"]["content"][0]["text"] for message in messages}


def check(output: bytes) -> None:
    assert texts(output) == {1: "a", 2: "x" * 800_000, 3: "done"}


# Stray output


def test_stray_output_goes_to_stderr() -> None:
    with Raw(SLOW).open() as server:
        server.send(call(1, "stray"))
        assert server.receive() == {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {"content": [{"type": "text", "text": "done"}]},
        }
        server.end()
        said = server.stderr()
        for what in ("print", "no newline", "write", "buffer", "the first stdout", "fd 1", "shell"):
            assert said.count(f"stray: {what}") == 1, said
        # The child found an empty stdin and not the client's.
        assert "EOFError" in said


def test_a_closed_stderr_does_no_harm() -> None:
    with Raw(SLOW) as server:
        assert server.process.stderr is not None
        server.process.stderr.close()
        server.process.stderr = None
        server.open()
        server.send(call(1, "shout", lines=100), call(2, "stray"), call(3, "echo", text="still here"))
        assert server.answer(3)["result"]["content"][0]["text"] == "still here"
        server.end()


def test_a_full_unread_stderr_blocks_nothing() -> None:
    with Raw([*SLOW, "--log-format", "json"]).open() as server:
        server.send(call(1, "shout", lines=8_000))
        assert server.answer(1)["result"]["content"][0]["text"] == "shouted"
        server.send(call(2, "echo", text="still here"))
        assert server.answer(2)["result"]["content"][0]["text"] == "still here"
        server.end()
        complete, _, cut = server.stderr().rpartition("\n")
        assert [json.loads(line)["message"] for line in complete.splitlines()][1] == "0 " + "z" * 100
        assert len(cut) < 1_000


def test_dropped_log_lines_are_counted() -> None:
    with Raw(SLOW).open() as server:
        server.send(call(1, "shout", lines=8_000))
        server.answer(1)
        assert server.process.stderr is not None
        said, written, dropped = b"", 0, 0
        while written + dropped < 16_000:
            assert select.select([server.process.stderr], [], [], PATIENCE)[0]
            said += os.read(server.process.stderr.fileno(), 65_536)
            written = said.count(b"y\n") + said.count(b"z\n")
            dropped = sum(int(number) for number in re.findall(rb"(\d+) lines were dropped", said))
        assert dropped
        assert written + dropped == 16_000


# Kinds of streams


def test_files_serve_as_stdin_and_stdout(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(CALLS)
    with (
        (tmp_path / "in").open("rb") as given,
        (tmp_path / "out").open("wb") as taken,
        Raw(SLOW, stdin=given, stdout=taken) as server,
    ):
        assert server.wait() == 0
    check((tmp_path / "out").read_bytes())


def test_devnull_serves_as_stdin_and_stdout() -> None:
    with Raw(SLOW, stdin=subprocess.DEVNULL) as server:
        assert server.rest() == []
        assert server.wait() == 0
    with Raw(SLOW, stdout=subprocess.DEVNULL) as server:
        server.send_bytes(CALLS)
        server.close_stdin()
        assert server.wait() == 0


def test_a_full_disk_ends_the_server() -> None:
    with open("/dev/full", "wb") as full, Raw(SLOW, stdout=full) as server:
        server.send_bytes(lines(INITIALIZE, INITIALIZED, call(1, "hold")))
        assert server.wait() == 0
        assert "Traceback" not in server.stderr()


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_streams_closed_from_the_start_end_the_server(closed: tuple[int, ...], tmp_path: Path) -> None:
    code = (
        f"import os, sys\nfor fd in {closed}: os.close(fd)\nos.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    trace = tmp_path / "trace"
    with Raw([sys.executable, "-c", code, *SLOW[1:], "--trace", str(trace)]) as server:
        server.push(CALLS)
        server.close_stdin()
        output = b"".join(json.dumps(message).encode() + b"\n" for message in server.rest())
        assert server.wait() == 0
    if closed == (2,):
        check(output)
    else:
        assert output == b""
    assert b'"2.0"' not in trace.read_bytes().replace(b'"jsonrpc":"2.0"', b"")


def test_a_socket_serves_both_directions() -> None:
    ours, theirs = socket.socketpair()
    with ours, Raw(SLOW, stdin=theirs, stdout=theirs) as server:
        theirs.close()
        ours.sendall(CALLS)
        ours.shutdown(socket.SHUT_WR)
        ours.settimeout(PATIENCE)
        output = b""
        while chunk := ours.recv(65_536):
            output += chunk
        check(output)
        assert server.wait() == 0


def test_the_blocking_mode_of_a_socket_is_restored() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, Raw(SLOW, stdin=theirs, stdout=theirs) as server:
        server.fd_in = server.fd_out = ours.fileno()
        server.open()
        assert not os.get_blocking(theirs.fileno())
        ours.shutdown(socket.SHUT_WR)
        assert server.wait() == 0
        assert os.get_blocking(theirs.fileno())


@pytest.mark.parametrize("ending", ["hangup", "signal"])
def test_a_terminal_serves_as_stdin_and_stdout(ending: str) -> None:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    with Raw(SLOW, stdin=theirs, stdout=theirs) as server:
        # The terminal is the shell's too, which would break if it did not block.
        assert os.get_blocking(theirs)
        os.close(theirs)
        server.fd_in = server.fd_out = ours
        server.open().send(call(1, "large", size=800_000))
        assert len(server.answer(1)["result"]["content"][0]["text"]) == 800_000
        if ending == "signal":
            server.process.send_signal(signal.SIGTERM)
            assert server.wait() == 0
        os.close(ours)
        assert server.wait() == 0
        assert "Traceback" not in server.stderr()

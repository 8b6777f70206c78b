"""The stdio transport on pipes and files. `tests/checks/faults` tests whole servers with it."""

import fcntl
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from shared import Implementation, Server
from shared.protocol.session.events import Outgoing
from shared.protocol.wire import codec
from shared.protocol.wire.jsonrpc import Malformed, Message, Notification, Request
from shared.server.dispatch.connection import serve
from shared.transports import stdio
from shared.transports.stdio import StdioTransport
from tests.clock import forward
from tests.wire import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{}}'


@contextmanager
def piped(max_message: int = 1_000_000) -> Iterator[tuple[StdioTransport, int, int]]:
    """Yields a transport, the descriptor to write its input, and the one to read its output."""
    fd_in, ours_out = os.pipe()
    ours_in, fd_out = os.pipe()
    transport = StdioTransport(fd_in, fd_out, max_message)
    try:
        yield transport, ours_out, ours_in
    finally:
        for fd in (ours_out, ours_in):
            with suppress(OSError):
                os.close(fd)
        for thread in threading.enumerate():
            if thread.name in ("stdin", "stdout"):
                thread.join(PATIENCE)
        transport.close()


@pytest.fixture(params=["waiting", "threads"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to handle pipes; Windows has threads."""
    if request.param == "threads":
        monkeypatch.setattr(stdio, "_CAN_WAIT", False)  # a property of the system


async def everything(transport: StdioTransport) -> list[Message]:
    messages: list[Message] = []
    with anyio.fail_after(PATIENCE), suppress(anyio.EndOfStream):
        while True:
            messages += await transport.receive()
    return messages


@pytest.mark.usefixtures("way")
async def test_lines_become_messages_whatever_the_chunk_size() -> None:
    data = PING % 1 + b"\n\r\n" + PING % 2 + b"\r\n" + PING % 3
    for cut in (1, 7, len(data)):
        with piped() as (transport, outbox, _):
            for start in range(0, len(data), cut):
                os.write(outbox, data[start : start + cut])
            os.close(outbox)
            assert await everything(transport) == [Request(id_, "ping") for id_ in (1, 2, 3)]
            with pytest.raises(anyio.EndOfStream):
                await transport.receive()
            assert transport.ended.is_set()


async def test_available_lines_are_received_together() -> None:
    with piped() as (transport, outbox, _):
        os.write(outbox, PING % 1 + b"\n" + PING % 2 + b"\n" + b"half")
        assert await transport.receive() == [Request(1, "ping"), Request(2, "ping")]


async def test_a_large_message_is_delivered_in_its_own_turn() -> None:
    large = b'{"jsonrpc":"2.0","id":2,"method":"m","params":{"a":"%b"}}' % (b"x" * 500_000)
    with piped() as (transport, outbox, _), anyio.fail_after(PATIENCE):
        taken: list[Message] = []
        transport.receive_by(lambda messages: taken.extend(messages) or ())
        async with anyio.create_task_group() as tasks:
            lines = b"\n".join([PING % 1, large, PING % 3, b""])
            tasks.start_soon(to_thread.run_sync, os.write, outbox, lines)
            received = await transport.receive()
        assert taken == [Request(1, "ping")]
        assert received == [Request(2, "m", {"a": "x" * 500_000}), Request(3, "ping")]


@pytest.mark.usefixtures("way")
async def test_a_decoding_fault_of_a_large_message_is_answered_and_reading_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def break_(*_: object) -> int:
        raise AttributeError

    monkeypatch.setattr(codec, "weigh", break_)
    large = b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"%b"}}' % (b"x" * 500_000)
    app = Server[None](Implementation(name="t", version="1"))
    with piped() as (transport, outbox, inbox):
        async with app.open() as running, anyio.create_task_group() as tasks:
            tasks.start_soon(serve, running, transport)
            await to_thread.run_sync(os.write, outbox, large + b"\n" + PING % 1 + b"\n")
            with os.fdopen(os.dup(inbox), "rb") as answers, anyio.fail_after(PATIENCE):
                lines = [await to_thread.run_sync(answers.readline) for _ in range(2)]
            transport.stop()
    assert json.loads(lines[0]) == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": "internal error"}}
    assert json.loads(lines[1])["id"] == 1


@pytest.mark.usefixtures("way")
async def test_several_large_messages_arrive() -> None:
    large = b'{"jsonrpc":"2.0","id":%d,"method":"m","params":{"a":"%b"}}\n'
    with piped() as (transport, outbox, _):

        def write() -> None:
            for number in range(4):
                os.write(outbox, large % (number, b"x" * 400_000))
            os.close(outbox)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(to_thread.run_sync, write)
            messages = await everything(transport)
    assert [one.id for one in messages if isinstance(one, Request)] == [0, 1, 2, 3]


async def test_a_line_over_the_size_limit_is_malformed() -> None:
    with piped(max_message=100) as (transport, outbox, _):
        long = b'{"jsonrpc": "2.0", "id": 7, "method": "m", "params": {"a": "%s"}}' % (b"x" * 5_000)
        os.write(outbox, b"x" * 5_000 + b"\n" + long + b"\n" + PING % 1 + b"\n")
        os.close(outbox)
        *refused, ping = await everything(transport)
        assert all(isinstance(one, Malformed) and "100 bytes" in one.failure.message for one in refused)
        assert [one.failure.id for one in refused] == [None, 7]
        assert ping == Request(1, "ping")


async def test_small_messages_are_sent_in_one_write() -> None:
    with piped() as (transport, _, inbox):
        await transport.send([Outgoing(Notification("x")), Outgoing(None, 1), Outgoing(Notification("y"))])
        assert os.read(inbox, 1_000).count(b"\n") == 2


async def test_sending_a_large_answer_does_not_wait_for_a_reader() -> None:
    if not hasattr(fcntl, "F_SETPIPE_SZ"):
        pytest.skip("this system does not let a pipe be made larger")
    with piped() as (transport, _, _inbox), anyio.fail_after(PATIENCE):
        await transport.send([Outgoing(Notification("x", {"text": "y" * 900_000}))])


def test_try_send_writes_a_few_small_messages() -> None:
    with piped() as (transport, _, inbox):
        assert transport.try_send([Outgoing(Notification("x")), Outgoing(None, 1), Outgoing(Notification("y"))])
        assert os.read(inbox, 1_000).count(b"\n") == 2


async def test_messages_refused_by_try_send_can_be_sent() -> None:
    large = [Outgoing(Notification("large", {"text": "y" * 100_000}))]
    many = [Outgoing(Notification("many", {"number": number})) for number in range(20)]
    with piped() as (transport, _, inbox):
        received = b""
        for outgoing in (large, many):
            assert not transport.try_send(outgoing)
            await transport.send(outgoing)
            received += os.read(inbox, 1_000_000)
        assert received.count(b"\n") == 21


async def test_try_send_writes_nothing_when_the_message_does_not_fit() -> None:
    one = [Outgoing(Notification("x", {"text": "y" * 3_000}))]
    with piped() as (transport, _, inbox), anyio.fail_after(PATIENCE):
        left = 0
        while transport.try_send(one):
            left += 1
        received = os.read(inbox, 2_000_000)
        await transport.send(one)
        received += os.read(inbox, 2_000_000)
        assert received.count(b"\n") == left + 1


def test_try_send_fails_without_a_reader() -> None:
    with piped() as (transport, _, inbox):
        os.close(inbox)
        assert not transport.try_send([Outgoing(Notification("x"))])


def test_try_send_fails_on_systems_where_writing_may_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "_CAN_WAIT", False)  # a property of the system
    with piped() as (transport, _, _inbox):
        assert not transport.try_send([Outgoing(Notification("x"))])


@pytest.mark.usefixtures("way")
async def test_sending_without_a_reader_raises_broken_resource_error() -> None:
    with piped() as (transport, _, inbox):
        os.close(inbox)
        with pytest.raises(anyio.BrokenResourceError):
            await transport.send([Outgoing(Notification("x"))])


@pytest.mark.usefixtures("way")
async def test_answers_keep_their_order_for_slow_and_fast_readers() -> None:
    """Some are sent at once; others wait for a full pipe, or are too many or too long for one write."""
    names = [f"{number:05}{'x' * (number % 23 * 300)}" for number in range(1_000)]
    received = bytearray()

    def write(outbox: int) -> None:
        lines = [b'{"jsonrpc":"2.0","id":"%b","method":"ping"}\n' % name.encode() for name in names]
        for start in range(0, len(lines), 5):
            os.write(outbox, b"".join(lines[start : start + 1 + start % 4]))
            os.write(outbox, b"".join(lines[start + 1 + start % 4 : start + 5]))
        os.close(outbox)

    def read(inbox: int) -> None:
        sizes = itertools.cycle((1, 4_000, 1_000_000))
        while received.count(b"\n") < len(names):
            received.extend(os.read(inbox, next(sizes)))

    with piped() as (transport, outbox, inbox), anyio.fail_after(PATIENCE):
        async with (
            Server(Implementation(name="test", version="1")).open() as running,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(to_thread.run_sync, write, outbox)
            tasks.start_soon(to_thread.run_sync, read, inbox)
            await serve(running, transport)
    assert [json.loads(line)["id"] for line in received.splitlines()] == names


@pytest.mark.usefixtures("way")
async def test_stop_ends_the_input() -> None:
    with piped() as (transport, _, _inbox):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(everything, transport)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            transport.stop()
        assert transport.ended.is_set()


async def test_stop_before_the_first_read_ends_the_input() -> None:
    with piped() as (transport, outbox, _):
        os.write(outbox, PING % 1 + b"\n")
        transport.stop()
        transport.stop()
        assert await everything(transport) == []


@pytest.mark.usefixtures("way")
async def test_a_connection_reset_ends_the_input() -> None:
    ours, theirs = socket.socketpair()
    ours.send(b"not read, so the end of this is a reset")
    theirs.close()
    transport = StdioTransport(ours.detach(), os.open(os.devnull, os.O_WRONLY))
    assert await everything(transport) == []
    assert transport.ended.is_set()
    transport.close()


async def test_a_peer_is_gone_when_it_neither_writes_nor_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "_POLL_SECONDS", 0)
    events = list[str]()

    async def wait(transport: StdioTransport) -> None:
        await transport.wait_gone()
        events.append("gone")

    with piped() as (transport, _, inbox), anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, transport)
            transport.stop()
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            assert events == []
            os.close(inbox)
    assert events == ["gone"]


@pytest.mark.parametrize("leaves", [False, True])
async def test_a_peer_that_closed_its_output_and_reads_nothing_is_gone(leaves: bool) -> None:
    with piped() as (transport, outbox, _), anyio.fail_after(1_000):
        os.write(outbox, PING % 1 + b"\n")
        assert len(await transport.receive()) == 1
        os.write(outbox, PING % 2 + b"\n")  # not received, because nobody reads the answer to the first
        if leaves:
            os.close(outbox)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transport.wait_gone)
            await anyio.wait_all_tasks_blocked()
            for _ in range(3):
                forward(stdio._UNREAD_SECONDS)
                await anyio.wait_all_tasks_blocked()
            assert transport.ended.is_set() is leaves
            if not leaves:
                assert len(await transport.receive()) == 1
                tasks.cancel_scope.cancel()


async def test_reading_again_stops_the_check_of_the_peer() -> None:
    with piped() as (transport, outbox, _), anyio.fail_after(PATIENCE):
        for number in (1, 2):
            os.write(outbox, PING % number + b"\n")
            while number == 2 and transport._in._timer is None:  # until the transport notices that nothing reads
                await anyio.lowlevel.checkpoint()
            assert len(await transport.receive()) == 1
        assert transport._in._timer is None  # an idle server sleeps


async def test_a_peer_that_closed_its_output_and_reads_slowly_is_not_gone() -> None:
    with piped() as (transport, outbox, inbox), anyio.fail_after(1_000):
        os.write(outbox, PING % 1 + b"\n")
        assert len(await transport.receive()) == 1
        os.write(outbox, PING % 2 + b"\n")
        os.close(outbox)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transport.send, [Outgoing(Notification("x", {"text": "x" * 5_000_000}))])
            await anyio.wait_all_tasks_blocked()
            for _ in range(3):
                os.read(inbox, 100_000)
                await anyio.wait_all_tasks_blocked()
                forward(stdio._UNREAD_SECONDS)
                await anyio.wait_all_tasks_blocked()
            assert not transport.ended.is_set()
            for _ in range(2):
                forward(stdio._UNREAD_SECONDS)
                await anyio.wait_all_tasks_blocked()
            assert transport.ended.is_set()
            tasks.cancel_scope.cancel()


async def test_a_peer_that_closed_its_output_may_wait_for_its_answers() -> None:
    with piped() as (transport, outbox, _), anyio.fail_after(1_000):
        os.close(outbox)
        with pytest.raises(anyio.EndOfStream):
            await transport.receive()
        events: list[str] = []

        async def wait_until_gone() -> None:
            await transport.wait_gone()
            events.append("gone")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_until_gone)
            for _ in range(3):
                await anyio.wait_all_tasks_blocked()
                forward(stdio._UNREAD_SECONDS)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert not events


async def test_messages_received_before_stop_are_not_lost() -> None:
    with piped() as (transport, outbox, _):
        os.write(outbox, PING % 1 + b"\n" + PING % 2 + b"\n")
        assert len(await transport.receive()) == 2
        transport.stop()
        with pytest.raises(anyio.EndOfStream):
            await transport.receive()


async def test_receive_returns_the_messages_that_a_taker_leaves() -> None:
    taken: list[Message] = []
    rest: list[Message] = []

    def take_first(messages: Sequence[Message]) -> Sequence[Message]:
        taken.append(messages[0])
        return messages[1:]

    async def collect() -> None:
        rest.extend(await everything(transport))

    with piped() as (transport, outbox, _):
        transport.receive_by(take_first)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect)
            os.write(outbox, PING % 1 + b"\n")
            while not taken:
                await anyio.lowlevel.checkpoint()
            assert rest == []
            os.write(outbox, PING % 2 + b"\n" + PING % 3 + b"\n")
            os.close(outbox)
    assert taken == [Request(1, "ping"), Request(2, "ping")]
    assert rest == [Request(3, "ping")]


async def test_receive_raises_the_exception_of_a_taker() -> None:
    def take(_messages: Sequence[Message]) -> Sequence[Message]:
        raise ZeroDivisionError

    with piped() as (transport, outbox, _), anyio.fail_after(PATIENCE):
        transport.receive_by(take)
        os.write(outbox, PING % 1 + b"\n")
        with pytest.raises(ZeroDivisionError):
            await transport.receive()


def on_files(tmp_path: Path) -> StdioTransport:
    path = tmp_path / "in"
    path.write_bytes(b"".join(PING % number + b"\n" for number in range(10_000)))
    return StdioTransport(os.open(path, os.O_RDONLY), os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT))


async def test_files_are_read_and_written(tmp_path: Path) -> None:
    transport = on_files(tmp_path)
    messages = await everything(transport)
    assert messages == [Request(number, "ping") for number in range(10_000)]
    await transport.send([Outgoing(message) for message in messages if isinstance(message, Request)])
    transport.close()
    assert (tmp_path / "out").read_bytes() == (tmp_path / "in").read_bytes()


@pytest.mark.parametrize("source", ["file", "pipe"])
async def test_continuous_input_yields_to_other_tasks(source: str, tmp_path: Path) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    with piped() as (transport, outbox, _):
        reader = on_files(tmp_path) if source == "file" else transport
        reads = 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(others)
            for _ in range(8):
                if source == "pipe":
                    os.write(outbox, PING % 1 + b"\n")
                await reader.receive()
                reads += 1
            tasks.cancel_scope.cancel()
        if source == "file":
            reader.close()
    assert turns >= reads - 1


async def test_close_makes_pipes_blocking_again() -> None:
    fd_in, ours = os.pipe()
    copy = os.dup(fd_in)
    null = os.open(os.devnull, os.O_WRONLY)
    transport = StdioTransport(fd_in, null)
    assert not os.get_blocking(copy)
    transport.close()
    assert os.get_blocking(copy)
    os.close(copy)
    os.close(ours)


TWICE = """
import anyio, os, sys
from shared.transports.stdio import stdio

async def main():
    for _ in range(2):
        async with stdio() as transport:
            print("stray: two\\nlines, \\udc80")
            os.write(1, b"stray\\n")
            assert sys.stdout.fileno() == 1
            with open(0, closefd=False) as stdin:
                assert stdin.read() == ""
    print("in order:", sys.stdin.read())

sys.stdout.write("before, ")
anyio.run(main)
"""


@pytest.mark.slow
def test_stdin_and_stdout_are_restored() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWICE], cwd=ROOT, input=b"mine", capture_output=True, timeout=PATIENCE, check=True
    )
    assert done.stdout == b"before, in order: mine\n"
    # One log line per printed line, in order.
    assert done.stderr.decode().splitlines() == ["stray: two", "lines, \\udc80", "stray"] * 2

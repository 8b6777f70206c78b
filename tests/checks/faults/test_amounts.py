"""Too much of everything: long lines, many calls, a client that does not read. Memory stays within bounds."""

import os
import resource
import select
from pathlib import Path

from tests.raw import FILES, SLOW, Raw, call, lines, request
from tests.wire import PATIENCE

MB = 1_000_000
CHUNK = b"x" * MB


def test_an_endless_line_takes_no_memory(tmp_path: Path) -> None:
    with Raw([*FILES, str(tmp_path), "--max-message", str(MB)]).open() as server:
        before = server.memory()
        for _ in range(100):
            server.send_bytes(CHUNK)
        assert server.memory() - before < 10 * MB
        # It is told at once, and once, that this can't go on; the rest of the line is no message.
        assert server.receive()["error"]["code"] == -32600
        server.send_bytes(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        server.send(request(2, "ping"))
        assert server.receive() == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_the_default_limit_of_a_line_is_that_of_a_message() -> None:
    with Raw(SLOW).open() as server:
        before = server.memory()
        for _ in range(200):
            server.send_bytes(CHUNK)
        assert server.memory() - before < 64 * 1_048_576 + 20 * MB
        assert "67,108,864" in server.receive()["error"]["message"]
        assert server.memory("VmRSS") - before < 10 * MB


def test_messages_beyond_the_limit_are_refused() -> None:
    with Raw([*SLOW, "--max-message", "100000"]).open() as server:
        frame = len(lines(call(1, "echo", text=""))) - 1
        for size, fits in ((100_000, True), (100_001, False)):
            server.send(call(1, "echo", text="x" * (size - frame)))
            message = server.receive()
            assert ("result" in message) is fits
            assert fits or (message["id"] == 1 and message["error"]["code"] == -32600)


def test_deeply_nested_results_do_no_harm() -> None:
    with Raw(SLOW).open() as server:
        for levels in (100, 190, 250, 300, 900, 5_000):
            server.send(call(levels, "deep", levels=levels), call("after", "echo", text="fine"))
            assert {"result", "error"} & server.answer(levels).keys()
            assert server.answer("after")["result"]["content"][0]["text"] == "fine"


def test_a_flood_of_invalid_messages_takes_no_memory() -> None:
    with Raw(SLOW).open() as server:
        before = server.memory()
        server.send_bytes(b"\n" * 10 * MB + b"{}" + b"\n")
        assert server.receive()["error"]["code"] == -32600
        bad = server.push(b"x\n" * 5 * MB, 0.5)
        assert bad < 5 * MB, "it went on reading although nobody took its answers"
        assert server.memory() - before < 60 * MB


def test_a_client_that_does_not_read_causes_backpressure() -> None:
    with Raw(SLOW).open() as server:
        before = server.memory()
        data = lines(*(call(id_, "large", size=50_000) for id_ in range(4_000)))
        taken = server.push(data, 0.5)
        assert server.memory() - before < 80 * MB
        _exchange(server, data[taken:], 4_000)
        # 200 MB went through; what it may have held is some hundred answers.
        assert server.memory() - before < 80 * MB
        server.send(request("after", "ping"))
        assert server.receive()["id"] == "after"


def _exchange(server: Raw, data: bytes, count: int) -> None:
    """Sends `data` and reads meanwhile, until so many lines have come back."""
    rest, answered = memoryview(data), 0
    while rest or answered < count:
        writers = [server.fd_in] if rest else []
        readable, writable, _ = select.select([server.fd_out], writers, [], PATIENCE)
        assert readable or writable, "it took no more although it was read"
        if writable:
            rest = rest[server.push(bytes(rest[:65_536]), 0) :]
        if readable:
            answered += os.read(server.fd_out, 1 << 20).count(b"\n")
    assert answered == count


def test_a_million_pings_take_no_memory() -> None:
    with Raw(SLOW).open() as server:
        before = server.memory()
        _exchange(server, lines(request(1, "ping")) * 1_000_000, 1_000_000)
        assert server.memory() - before < 20 * MB
        server.send(request("after", "ping"))
        assert server.receive()["id"] == "after"


def test_huge_invalid_messages_are_refused_and_the_server_continues() -> None:
    """All other kinds are in `tests/transcripts/errors`."""
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "%b", "params": %b}'
    huge = [
        (b"[" * 100_000, -32700),
        (b'{"a":' * 50_000, -32700),
        (b"1" * 5_000, -32700),
        (ping % (b"ping", b'{"a": %b%b}' % (b"[" * 250, b"]" * 250)), -32602),
        (ping % (b"x" * 100_000, b"{}"), -32601),
        (ping % (b"ping", b'{"a": "%b"}' % (b"x" * 65 * 1_048_576)), -32600),
    ]
    with Raw(SLOW).open() as server:
        codes = []
        for line, _ in huge:
            server.send_bytes(line + b"\n")
            codes.append(server.receive()["error"]["code"])
        assert codes == [code for _, code in huge]
        for id_ in (10**4_000, "x" * 1_000_000):
            server.send(request(id_, "ping"))
            assert server.receive() == {"jsonrpc": "2.0", "id": id_, "result": {}}
        server.end()
        assert server.stderr().count("\n") == 1  # "closed in order"


def test_ten_thousand_simultaneous_cancellations_leak_nothing() -> None:
    with Raw(SLOW).open() as server:
        before = server.memory()
        cancelled = (
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}}
            for id_ in range(10_000)
        )
        calls = (call(id_, "hold") for id_ in range(10_000))
        server.send_bytes(lines(*(one for pair in zip(calls, cancelled, strict=True) for one in pair)))
        server.send(call("after", "echo", text="fine"))
        messages = [server.receive()]
        while "id" not in messages[-1]:
            messages.append(server.receive())
        assert messages[-1]["id"] == "after"
        assert server.memory() - before < 60_000_000
        server.close_stdin()
        assert [one for one in server.rest() if "method" not in one] == []
        assert server.wait() == 0


def test_a_trace_that_cannot_be_written_ends_alone(tmp_path: Path) -> None:
    with Raw([*SLOW, "--trace", str(tmp_path / "trace")]).open() as server:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (4_000, 4_000))
        for id_ in range(20):
            server.send(call(id_, "echo", text="x" * 500))
            assert "result" in server.answer(id_)
        server.close_stdin()
        assert server.wait() == 0
        assert server.stderr().count("the trace ends here") == 1

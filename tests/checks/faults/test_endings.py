"""The end, in order or not: streams that close, clients that die, signals (stdio; PROTOCOL 5.8)."""

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress

import pytest

from tests.raw import SLOW, Json, Raw, call, lines, request, stateless
from tests.wire import PATIENCE

LISTEN = {"notifications": {"resourceSubscriptions": ["slow:///thing"], "toolsListChanged": True}}


def texts(messages: list[Json]) -> dict[object, str]:
    return {one["id"]: one["result"]["content"][0]["text"] for one in messages if "result" in one}


def test_pending_results_are_written_after_stdin_closes() -> None:
    with Raw([*SLOW, "--drain", "60"]).open() as server:
        server.send(*(call(id_, "large", size=50_000) for id_ in range(100)), call("slow", "hold", seconds=0.3))
        server.send_bytes(lines(call("last", "echo", text="no newline")).removesuffix(b"\n"))
        server.close_stdin()
        answers = texts(server.rest())
        assert len(answers) == 102
        assert (answers["slow"], answers["last"]) == ("held", "no newline")
        assert server.wait() == 0


def test_calls_longer_than_the_drain_time_are_cancelled() -> None:
    with Raw([*SLOW, "--drain", "1"]).open() as server:
        server.send(call(1, "hold"))
        server.begun()
        server.end()
        assert "closed in order" in server.stderr()


def test_a_lost_client_ends_its_calls() -> None:
    with Raw(SLOW).open() as server:
        server.send(call(1, "hold"), *(call(id_, "large", size=500_000) for id_ in range(2, 50)))
        server.begun()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.close_stdin()
        assert server.wait() == 0
        assert server.stderr().count("\n") == 1  # "closed in order", and no complaint


def test_a_closed_stdout_ends_the_server() -> None:
    with Raw(SLOW).open() as server:
        server.send(call(1, "hold"))
        server.begun()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.send(call(2, "echo", text="anyone there?"))
        assert server.wait() == 0


CLIENT = """
import os, subprocess, sys, time
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdin.write(os.read(0, 65536)); server.stdin.flush()
while b"begun" not in server.stdout.readline(): pass
os.write(1, b"%d\\n" % server.pid)
os.read(0, 1)
"""


def _adopt_orphans(adopt: bool) -> None:
    pr_set_child_subreaper = 36
    assert ctypes.CDLL(None).prctl(pr_set_child_subreaper, int(adopt), 0, 0, 0) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux alone: run it there")
@pytest.mark.parametrize("tool", ["hold", "cling"])
def test_a_server_ends_after_its_client_is_killed(tool: str) -> None:
    command = [sys.executable, "-c", CLIENT, *SLOW, "--drain", "1"]
    _adopt_orphans(True)
    try:
        with Raw(command) as client:
            client.send_bytes(lines(stateless(call(1, tool))))
            assert select.select([client.fd_out], [], [], PATIENCE)[0]
            pid = int(os.read(client.fd_out, 100))
            ended = os.pidfd_open(pid)
            client.process.kill()
            done = select.select([ended], [], [], PATIENCE)[0]
            os.close(ended)
            if not done:
                os.kill(pid, signal.SIGKILL)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        _adopt_orphans(False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_in_order(number: signal.Signals) -> None:
    with Raw(SLOW) as server:
        server.send(*(stateless(request(id_, "subscriptions/listen", LISTEN)) for id_ in ("a", "b")))
        acknowledged = {server.receive()["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] for _ in "ab"}
        assert acknowledged == {"a", "b"}
        server.send(stateless(call("call", "hold", seconds=0.3)))
        server.begun()
        server.process.send_signal(number)
        messages = server.rest()
        assert texts([one for one in messages if one.get("id") == "call"]) == {"call": "held"}
        for id_ in ("a", "b"):
            assert [one["result"]["resultType"] for one in messages if one.get("id") == id_] == ["complete"]
            cancelled = [one["params"] for one in messages if one.get("method") == "notifications/cancelled"]
            assert [one["requestId"] for one in cancelled].count(id_) == 1
        assert server.wait() == 0
        assert "closed in order" in server.stderr()


def test_a_signal_ends_a_server_whose_client_does_not_read() -> None:
    with Raw([*SLOW, "--drain", "1"]).open() as server:
        server.send(call(1, "hold"), *(call(id_, "large", size=500_000) for id_ in range(2, 20)))
        server.begun()
        server.process.terminate()
        assert server.wait() == 0


def test_a_second_signal_ends_the_server_at_once() -> None:
    with Raw(SLOW) as server:
        server.send(stateless(request("a", "subscriptions/listen", LISTEN)), stateless(call(1, "hold")))
        server.begun()
        server.process.terminate()
        server.answer("a")
        server.process.terminate()
        assert server.wait() == -signal.SIGTERM


def test_a_second_signal_ends_a_blocked_loop() -> None:
    with Raw(SLOW).open() as server:
        server.send(call(1, "block"))
        server.begun()
        assert _catches(server, signal.SIGTERM)
        server.process.terminate()
        deadline = time.monotonic() + PATIENCE
        while _catches(server, signal.SIGTERM):
            assert time.monotonic() < deadline
        server.process.terminate()
        assert server.wait() == -signal.SIGTERM


def _catches(server: Raw, number: signal.Signals) -> bool:
    with open(f"/proc/{server.pid}/status") as status:
        mask = next(line.split()[1] for line in status if line.startswith("SigCgt:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_a_signal_after_the_end_of_stdin_shortens_the_drain() -> None:
    with Raw([*SLOW, "--drain", "3600"]) as server:
        server.send(stateless(request("a", "subscriptions/listen", LISTEN)), stateless(call(1, "hold")))
        server.begun()
        server.close_stdin()
        server.answer("a")  # so it knows that the stream has ended
        server.process.terminate()
        assert 1 not in texts(server.rest())
        assert server.wait() == 0
        assert "closed in order" in server.stderr()


def test_a_thread_that_never_returns_is_abandoned() -> None:
    with Raw([*SLOW, "--drain", "0.2"]).open() as server:
        server.send(call(1, "hang"))
        server.begun()
        server.close_stdin()
        assert server.rest() == []
        assert server.wait() == 1
        assert "did not stop" in server.stderr()


def test_a_stopping_server_accepts_no_more_calls() -> None:
    with Raw(SLOW).open() as server:
        server.send(call(1, "hold", seconds=0.3))
        server.begun()
        server.process.terminate()
        with suppress(BrokenPipeError):  # it may have ended by now
            server.push(lines(call(2, "echo", text="too late")), 0.1)
        messages = server.rest()
        assert texts(messages)[1] == "held"
        assert server.wait() == 0

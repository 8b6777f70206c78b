"""`--workers`: several processes on one port, their restart and their end."""

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from shared.program.run import Options
from shared.program.workers import check_workers
from tests.processes import is_alive
from tests.raw import INITIALIZE, INITIALIZED, SLOW, Raw, call, headers_of, request, stateless
from tests.redis_server import RedisServer
from tests.shared.program.several import FREELY, Several, variable, wait_for
from tests.wire import NEWEST_HANDSHAKE, PATIENCE

STORE = "redis://127.0.0.1:1"
BUNDLE = [sys.executable, "-m", "servers", "serve"]


# Refusals


def refused(*words: str) -> str:
    with Raw([*SLOW, "--workers", "2", *words]) as program:
        assert program.wait() == 2
        return program.stderr()


@pytest.mark.parametrize(
    ("given", "platform", "reason"),
    [
        ({"store": STORE}, "linux", "over stdio, one process serves one client"),
        ({"transport": "http"}, "linux", "--store.* session or task, streams .* limit"),
        ({"transport": "http", "store": STORE}, "win32", "on Windows"),
    ],
)
def test_workers_are_refused_where_unsupported(
    given: dict[str, Any], platform: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(ValueError, match=f"^--workers: .*{reason}"):
        check_workers(Options(workers=2, **given))


@pytest.mark.slow
def test_a_busy_port_is_reported_once_by_the_parent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        output = refused("--transport", "http", "--store", STORE, "--port", str(busy.getsockname()[1]))
    assert output.count("can't listen on 127.0.0.1") == 1
    assert "[worker" not in output


@pytest.mark.slow
def test_a_worker_that_cannot_start_ends_the_program(redis_server: RedisServer) -> None:
    with Several(redis_server, "--broken") as program:
        assert program.ended() == 2
        assert sum("/there/is/none: No such file" in line for line in program.lines) == 1


@pytest.mark.slow
def test_workers_are_refused_for_external_servers_with_sessions(tmp_path: Path) -> None:
    config = tmp_path / "bundle.yaml"
    config.write_text("servers: {theirs: {command: cat}}")
    with Raw([*BUNDLE, "--config", str(config), "--workers", "2", "--store", STORE]) as program:
        assert program.wait() == 2
        assert "--workers: theirs has sessions that belong to one process" in program.stderr()


# Restart and end


@pytest.fixture
def program(redis_server: RedisServer) -> Iterator[Several]:
    with Several(redis_server, *FREELY, "--log-level", "info") as started:
        yield started.served()


@pytest.mark.slow
def test_a_killed_worker_is_restarted(program: Several) -> None:
    assert sum("listening on" in line for line in program.lines) == 1
    before = program.pid(1)
    os.kill(before, signal.SIGSTOP)
    assert {program.health()["worker"] for _ in range(10)} == {2}
    program.kill(before)
    program.wait_for_line("worker 1 was ended by SIGKILL; restarting it in 0.1 s")
    wait_for(lambda: program.metrics()["mcp_workers"] == 2, "both serve again")
    assert program.metrics()["mcp_worker_restarts_total"] == 1
    os.kill(program.pid(2), signal.SIGSTOP)
    assert {program.health()["worker"] for _ in range(10)} == {1}
    assert program.pid(1) != before
    program.kill(program.pid(1))
    program.wait_for_line("worker 1 was ended by SIGKILL; restarting it in 0.2 s")


@contextmanager
def running_call(program: Several, tool: str, **arguments: Any) -> Iterator[Future[httpx.Response]]:
    """Starts a call, and yields its future once it is running."""
    with ThreadPoolExecutor() as calls:
        made = calls.submit(program.call, tool, **arguments)
        wait_for(lambda: program.metrics()["mcp_streams"], "the call is under way")
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("to_all", [False, True])
def test_shutdown_waits_for_running_calls(program: Several, to_all: bool) -> None:
    """Service managers signal all processes; that is not a second signal to one."""
    pids = program.pids()
    with running_call(program, "hold", seconds=0.5) as made:
        for pid in pids if to_all else ():
            os.kill(pid, signal.SIGTERM)
        program.send(signal.SIGTERM)
        answer = made.result(PATIENCE)
    assert '"held"' in answer.text
    assert answer.headers["connection"] == "close"
    assert program.ended() == 0
    assert not any(map(is_alive, pids))
    assert sum("closed in order" in line for line in program.lines) == 2


@pytest.mark.slow
def test_a_second_signal_ends_all_workers_at_once(program: Several) -> None:
    pids = program.pids()
    with running_call(program, "hang") as made:
        program.send(signal.SIGINT)
        program.wait_for_line("shared.program: SIGINT: ending")
        program.send(signal.SIGINT)
        assert program.ended() == -signal.SIGINT
        with pytest.raises(httpx.HTTPError):
            made.result(PATIENCE)
    wait_for(lambda: not any(map(is_alive, pids)), "the workers have ended")  # a kill takes a moment


@pytest.mark.slow
def test_workers_shut_down_cleanly_when_their_parent_is_killed(program: Several) -> None:
    pids = program.pids()
    with running_call(program, "hold", seconds=0.5) as made:
        program.kill(program.process.pid)
        assert '"held"' in made.result(PATIENCE).text
    wait_for(lambda: not any(map(is_alive, pids)), "the workers have ended")
    wait_for(lambda: sum("closed in order" in line for line in program.lines) == 2, "both closed in order")


# Replacement


def keep_calling(program: Several, ended: threading.Event, *, reuse: bool) -> tuple[int, list[str]]:
    """Calls a tool repeatedly, on one connection or on a new one each time; returns the number of successes and the
    errors."""
    message = stateless(call(1, "echo", text="x"))
    headers = {**headers_of(message), **({} if reuse else {"connection": "close"})}
    good, bad = 0, []
    with httpx.Client(timeout=PATIENCE) as client:
        while not ended.is_set():
            try:
                answer = client.post(f"{program.url}/mcp", json=message, headers=headers)
            except httpx.HTTPError as error:
                bad.append(repr(error))
            else:
                good += answer.status_code == 200
                bad += [] if answer.status_code == 200 else [answer.text]
    return good, bad


@pytest.mark.slow
def test_sighup_replaces_all_workers_without_failed_requests(program: Several) -> None:
    before, ended = set(program.pids()), threading.Event()
    with ThreadPoolExecutor() as clients:
        calling = [clients.submit(keep_calling, program, ended, reuse=n % 2 == 0) for n in range(4)]
        try:
            wait_for(lambda: program.metrics().get("mcp_requests_total"), "calls come")
            # As by service managers.
            for pid in before:
                os.kill(pid, signal.SIGHUP)
            program.send(signal.SIGHUP)
            program.wait_for_line("all workers were replaced")
        finally:
            ended.set()
        counts = [one.result(PATIENCE) for one in calling]
    assert [bad for _, bad in counts] == [[], [], [], []]
    assert not before & set(program.pids())
    assert len(program.pids()) == 2
    # Each is counted once, even after the process that served it has ended.
    metrics = program.metrics()
    assert metrics["mcp_requests_total"] == sum(good for good, _ in counts)
    assert metrics["mcp_worker_restarts_total"] == 0


@pytest.mark.slow
def test_a_session_survives_the_replacement_of_workers(program: Several) -> None:
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": NEWEST_HANDSHAKE}
    with httpx.Client(base_url=program.url, headers=headers, timeout=PATIENCE) as client:
        opened = client.post("/mcp", json=INITIALIZE)
        client.headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]
        assert client.post("/mcp", json=INITIALIZED).status_code == 202
        program.send(signal.SIGHUP)
        program.wait_for_line("all workers were replaced")
        called = request(1, "tools/call", {"name": "echo", "arguments": {"text": "x"}})
        assert '"x"' in client.post("/mcp", json=called).text


@pytest.mark.slow
def test_old_workers_stay_when_new_ones_cannot_start(redis_server: RedisServer, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("broken = false")
    with Several(redis_server, "--settings", str(settings)) as program:
        pids = program.served().pids()
        settings.write_text("broken = true")
        program.send(signal.SIGHUP)
        program.wait_for_line("the new worker failed to start")
        assert program.pids() == pids
        assert program.call("echo", text="x").status_code == 200


# Logs, health and state


@pytest.mark.slow
def test_counters_never_decrease_when_workers_are_killed(program: Several) -> None:
    for _ in range(5):
        program.call("echo", text="x")
    seen = [program.metrics()]
    assert seen[0]["mcp_requests_total"] == seen[0]["mcp_request_duration_seconds_count"] == 5
    program.kill(program.pid(1))
    seen.append(program.metrics())
    program.wait_for_line("worker 1 was ended by SIGKILL")
    program.kill(program.pid(2))
    program.wait_for_line("worker 2 was ended by SIGKILL")
    wait_for(lambda: program.metrics()["mcp_workers"] == 2, "both serve again")
    program.call("echo", text="x")
    seen.append(program.metrics())
    assert [one["mcp_requests_total"] for one in seen] == [5, 5, 6]
    assert all(one["mcp_server_up"] == 1 for one in seen)
    assert seen[2]["process_open_fds"] > 0


def test_log_lines_and_health_name_the_worker(redis_server: RedisServer) -> None:
    with Several(redis_server, "--log-format", "json") as program:
        program.served()
        assert program.health()["worker"] in {1, 2}
        assert program.call("echo", text="x").status_code == 200
        assert program.metrics()["mcp_workers"] == 2
        maps = [Path(f"/proc/{pid}/maps").read_text() for pid in (program.process.pid, *program.pids())]
        assert ["httptools" in one for one in maps] == [False, True, True], "the parent needs no web server"
        program.send(signal.SIGTERM)
        assert program.ended() == 0
        entries = [json.loads(line) for line in program.lines]
    assert sorted(one["worker"] for one in entries if one["message"] == "closed in order") == [1, 2]
    assert [one.get("worker") for one in entries if "listening on" in one["message"]] == [None]


@pytest.mark.slow
def test_workers_share_one_state_key(redis_server: RedisServer, program: Several) -> None:
    assert {variable(pid, "MCP_STATE_KEY") for pid in program.pids()} == {program.env["MCP_STATE_KEY"]}
    with Several(redis_server, env={"MCP_STATE_KEY": ""}) as other:
        first, second = (variable(pid, "MCP_STATE_KEY") for pid in other.served().pids())
        assert first == second != ""
        other.wait_for_line("MCP_STATE_KEY is not set")


@pytest.mark.slow
def test_workers_serve_several_servers_on_one_port(redis_server: RedisServer, tmp_path: Path) -> None:
    config = tmp_path / "bundle.yaml"
    config.write_text(f"servers: {{filesystem: {{roots: [{tmp_path}]}}, fetch: {{}}}}")
    with Several(redis_server, "--config", str(config), command=BUNDLE) as program:
        program.served()
        answer = httpx.get(f"{program.url}/metrics", timeout=PATIENCE).text
        assert 'mcp_server_up{server="fetch"} 1.0' in answer
        program.send(signal.SIGTERM)
        assert program.ended() == 0

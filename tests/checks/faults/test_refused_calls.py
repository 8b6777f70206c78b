"""Calls of three megabytes that are refused, cancelled or stopped, with the garbage collector off: nothing of them
may stay, since its thresholds count objects and these calls have few."""

import http.client
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.raw import INITIALIZE, SLOW, Json, Raw, call, listening, request, stateless
from tests.wire import NEWEST_HANDSHAKE, PATIENCE

UNCOLLECTED = """
import gc, sys
gc.disable()
gc.enable = gc.collect = lambda *_: 0
from importlib import import_module
sys.argv[0:2] = [sys.argv[1]]
from shared.program.run import run
sys.exit(run(import_module(sys.argv[0]).app))
"""
BIG = "x" * 3_000_000
ALLOWED = 32 * 1_048_576
SLOW_SERVER = ["tests.slow_server", "--max-seconds", "0.05"]
PAD = {"pad": BIG}

COUNT = 16
"""How often each call is sent: twelve leaks of three megabytes are over the limit already."""


def padded(message: Json) -> Json:
    """`message` with the three megabytes where every request may have them."""
    params = message["params"]
    return {**message, "params": {**params, "_meta": {**params.get("_meta", {}), **PAD}}}


REFUSED: dict[str, Json] = {
    "an unknown tool": call(1, "none", text=BIG),
    "an unknown method": request(1, "no/such", {"text": BIG}),
    "a bad cursor": request(1, "tools/list", {"cursor": BIG}),
    "params of the wrong shape": request(1, "tools/call", {"name": 5, "arguments": {"text": BIG}}),
    "an unknown argument": call(1, "echo", text="x", more=BIG),
    "an argument of the wrong type": call(1, "hold", seconds=BIG),
    "an unknown resource": padded(request(1, "resources/read", {"uri": "slow:///none"})),
    "a reference to nothing": request(
        1, "completion/complete", {"ref": {"type": "ref/prompt", "name": BIG}, "argument": {"name": "a", "value": ""}}
    ),
    "a missing capability": padded(call(1, "ask")),
    "a handler that fails": padded(call(1, "fail")),
    "a call that takes too long": padded(call(1, "hold")),
    "a call that ignores for a moment that it is stopped": padded(call(1, "cling", seconds=0)),
    "text that is no Unicode": call(1, "echo", text=BIG + "\ud800"),
}


def start(*command: str) -> Raw:
    return Raw([sys.executable, "-c", UNCOLLECTED, *command])


def grown(server: Raw, send: Callable[[], Any], count: int) -> int:
    """By how many bytes the server is larger after so many times than after a few."""
    for _ in range(3):
        send()
    before = server.memory("VmRSS")
    for _ in range(count):
        send()
    return server.memory("VmRSS") - before


@pytest.mark.timeout(3_600)
def test_refused_calls_on_stdio_leak_nothing() -> None:
    with start(*SLOW_SERVER).open() as server:

        def send() -> None:
            server.send_bytes(line)
            answer = server.answer(1)
            assert "error" in answer or answer["result"]["isError"], answer

        stays = {}
        for what, message in REFUSED.items():
            line = json.dumps(message).encode() + b"\n"
            stays[what] = grown(server, send, COUNT)
        assert {what: size for what, size in stays.items() if size > ALLOWED} == {}


@pytest.mark.timeout(3_600)
def test_cancelled_calls_leak_nothing() -> None:
    line = json.dumps(padded(call(1, "hold"))).encode() + b"\n"
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    with start("tests.slow_server").open() as server:

        def send() -> None:
            server.send_bytes(line)
            server.begun()
            server.send(cancelled, request(2, "ping"))
            server.answer(2)

        assert grown(server, send, COUNT) < ALLOWED


@pytest.mark.timeout(3_600)
def test_calls_that_fail_in_a_thread_leak_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    path = str(tmp_path / "file")
    wanted = {
        "changed": call(1, "write_file", path=path, content=BIG, if_match="none"),
        "already_exists": call(1, "write_file", path=path, content=BIG, mode="create"),
        "no_match": call(1, "edit_file", path=path, edits=[{"oldText": BIG, "newText": ""}]),
        "outside_roots": call(1, "write_file", path="/none", content=BIG),
        "bad_pattern": call(1, "search_content", path=str(tmp_path), pattern="(" + BIG),
    }
    with start("servers.filesystem.server", "--root", f"{tmp_path}:rw").open() as server:

        def send() -> None:
            server.send_bytes(line)
            assert server.answer(1)["result"]["content"][0]["text"].startswith(code)

        stays = {}
        for code, message in wanted.items():
            line = json.dumps(message).encode() + b"\n"
            stays[code] = grown(server, send, COUNT)
        assert {code: size for code, size in stays.items() if size > ALLOWED} == {}


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_garbage_of_a_tool_is_collected_by_its_bytes(transport: str) -> None:
    """A few objects that hold 3 MB each: by their number alone, they would be left alone."""
    message, headers = stateless_over_http(call(1, "tangle", text=BIG))
    body = json.dumps(message).encode()
    if transport == "stdio":
        with Raw(SLOW) as server:

            def send() -> None:
                server.send_bytes(body + b"\n")
                assert "result" in server.answer(1)

            assert grown(server, send, 60) < 128 * 1_048_576
    else:
        with Raw([*SLOW, "--transport", "http", "--port", "0"]) as server, connected(server) as post:
            assert grown(server, lambda: post(body, **headers), 60) < 128 * 1_048_576


@contextmanager
def connected(server: Raw) -> Iterator[Callable[..., tuple[int, http.client.HTTPMessage]]]:
    """What sends a request to a server over HTTP, on one connection."""
    url = httpx.URL(listening(server))
    connection = http.client.HTTPConnection(url.host, url.port or 0, timeout=PATIENCE)

    def post(body: bytes, **headers: str) -> tuple[int, http.client.HTTPMessage]:
        sent = {"accept": "application/json, text/event-stream", "content-type": "application/json", **headers}
        connection.request("POST", url.path, body, {name.replace("_", "-"): value for name, value in sent.items()})
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers

    try:
        yield post
    finally:
        connection.close()


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("era", [NEWEST_HANDSHAKE, "2026-07-28"])
def test_refused_calls_over_http_leak_nothing(era: str) -> None:
    with start(*SLOW_SERVER, "--transport", "http", "--port", "0") as server, connected(server) as post:
        headers: dict[str, str] = {}
        if era == NEWEST_HANDSHAKE:
            _, answered = post(json.dumps(INITIALIZE).encode())
            headers = {"mcp_session_id": answered["mcp-session-id"]}
        stays = {}
        for what, message in REFUSED.items():
            if era != NEWEST_HANDSHAKE:
                message, headers = stateless_over_http(message)
            body = json.dumps(message).encode()
            stays[what] = grown(server, lambda: post(body, **headers), COUNT)  # noqa: B023 - called at once
        stays["a session that is none"] = grown(server, lambda: post(body, mcp_session_id="none"), COUNT)
        stays["no JSON"] = grown(server, lambda: post(body[:-1], **headers), COUNT)
        assert {what: size for what, size in stays.items() if size > ALLOWED} == {}


def stateless_over_http(message: Json) -> tuple[Json, dict[str, str]]:
    """`message` in the era without sessions, and the headers that go with it."""
    meta = {**stateless(message)["params"]["_meta"], **message["params"].get("_meta", {})}
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": message["method"]}
    name = message["params"].get("name", message["params"].get("uri"))
    if isinstance(name, str):
        headers["mcp_name"] = name
    return {**message, "params": {**message["params"], "_meta": meta}}, headers

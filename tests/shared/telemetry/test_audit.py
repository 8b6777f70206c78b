"""Lines of the audit log for calls and refusals, over HTTP and WebSocket, and behavior on a full disk."""

import errno
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest

from shared.errors import InsufficientScope
from shared.extensions.tasks import tasks
from shared.protocol.http.rules import refuse
from shared.protocol.identity import Principal
from shared.protocol.types.base import Implementation
from shared.protocol.types.tasks import TASKS
from shared.server.dispatch.context import Context
from shared.server.server import Server
from shared.telemetry.audit import MAX_REFUSED, Audit, audit_calls
from shared.telemetry.audit_file import AuditFile
from shared.transports.http.limits.endpoint_limits import ClientLimits, EndpointLimits
from tests.shared.server.peer import talking
from tests.shared.transports.http.http_wire import STATELESS, Json, Site, listening
from tests.shared.transports.http.web_socket import web_socket

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"
ADA = {"Authorization": "Bearer ada"}


class Disk:
    """An audit file on a disk that can be full."""

    def __init__(self) -> None:
        self.lines: list[Json] = []
        self.writes: list[int] = []
        """The number of lines of each write."""
        self.is_full = False
        self.now = 1_000.0

    def clock(self) -> float:
        """A clock that the test sets."""
        return self.now

    def write(self, line: bytes) -> None:
        assert line.endswith(b"\n")
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.writes.append(line.count(b"\n"))
        self.lines += map(json.loads, line.splitlines())

    def close(self) -> None:
        """Nothing is open."""


def make_server() -> Server[Any]:
    app = Server[Any](Implementation(name="sample", version="7"), capabilities={"logging": {}})

    @app.tool()
    async def echo(text: str, password: str = "") -> str:
        """Give back what came."""
        if text == "forbidden":
            raise InsufficientScope(["sample:write"])
        if text == "broken":
            raise RuntimeError("secret detail")
        return text + password[:0]

    @app.tool(at_once=lambda text: text or None)
    async def quick(text: str) -> str:
        """Give back what came, at once if it is no empty text."""
        return text

    @app.tool()
    async def wait(ctx: Context[Any]) -> str:
        """Wait for ever."""
        await anyio.sleep_forever()
        return ""

    @app.resource("memo://{name}")
    async def memo(name: str) -> str:
        """A memo."""
        return name

    @app.prompt()
    async def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello {name}"

    return app


@asynccontextmanager
async def recorded(
    disk: Disk, *, arguments: bool = False, required: bool = False, **options: Any
) -> AsyncIterator[Site]:
    """A server over HTTP with an audit log."""
    audit = Audit(disk, arguments=arguments, required=required, clock=disk.clock)  # type: ignore[arg-type]
    opened = make_server().open(extensions=[audit_calls(audit, "sample")])
    async with opened as running, listening(running, audit=audit, **options) as site:
        yield site
    audit.close()


async def ask(site: Site, method: str, params: Json, headers: Json | None = None, **meta: Any) -> int:
    message, routing = site.stateless(method, params, **meta)
    return (await site.post(message, {**routing, **(headers or {})})).status_code


def _outcomes(disk: Disk, method: str) -> list[tuple[str, str]]:
    return [(one["tool"], one["outcome"]) for one in disk.lines if one["method"] == method]


def digest_of(arguments: Json) -> str:
    return sha256(json.dumps(arguments, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def echo(text: str, **more: Any) -> Json:
    return {"name": "echo", "arguments": {"text": text, **more}}


async def test_a_call_writes_a_line() -> None:
    disk = Disk()
    async with recorded(disk, tokens=("ada",)) as site:
        info = {"name": "probe", "version": "1"}
        meta = {"io.modelcontextprotocol/clientInfo": info, "traceparent": TRACEPARENT}
        assert await ask(site, "tools/call", echo("x"), ADA, **meta) == 200
    (line,) = disk.lines
    digest = sha256(b'{"text":"x"}').hexdigest()
    assert line.pop("time").endswith("Z")
    assert line.pop("ms") > 0
    assert line.pop("bytes_in") > 0
    assert line.pop("bytes_out") > 0
    assert line == {
        "principal": f"token-{sha256(b'ada').hexdigest()[:12]}",
        "address": "127.0.0.1",
        "trace": TRACE,
        "client": "probe",
        "server": "sample",
        "method": "tools/call",
        "tool": "echo",
        "arguments_sha256": digest,
        "outcome": "ok",
    }


async def test_a_call_that_is_answered_at_once_writes_a_line() -> None:
    disk = Disk()
    async with recorded(disk) as site:
        for text in ("x", ""):
            assert await ask(site, "tools/call", {"name": "quick", "arguments": {"text": text}}) == 200
    assert _outcomes(disk, "tools/call") == [("quick", "ok"), ("quick", "ok")]
    assert len(disk.lines) == 2


@pytest.mark.parametrize(("required", "writes"), [(False, [3]), (True, [1, 1, 1])])
async def test_lines_of_a_batch_share_a_write_unless_they_are_required(required: bool, writes: list[int]) -> None:
    disk = Disk()
    audit = Audit(disk, required=required, clock=disk.clock)  # type: ignore[arg-type]
    app = make_server().open(extensions=[audit_calls(audit, "sample")])
    async with app as running, talking(running, "2025-03-26") as peer:
        before = len(disk.writes)
        quick = {"name": "quick", "arguments": {"text": "x"}}
        call = {"jsonrpc": "2.0", "method": "tools/call", "params": quick}
        await peer.send([{**call, "id": number} for number in range(3)])
        await peer.end.receive_bytes()
        assert disk.writes[before:] == writes


async def test_lines_name_the_resource_or_the_prompt() -> None:
    disk = Disk()
    async with recorded(disk) as site:
        await ask(site, "resources/read", {"uri": "memo://a"})
        await ask(site, "prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
    assert [(one["method"], one.get("uri"), one.get("prompt")) for one in disk.lines] == [
        ("resources/read", "memo://a", None),
        ("prompts/get", None, "greet"),
    ]


async def test_arguments_are_written_without_secrets() -> None:
    disk = Disk()
    async with recorded(disk, arguments=True) as site:
        await ask(site, "tools/call", echo("Bearer abcdefghijkl", password="pw"))
    assert disk.lines[0]["arguments"] == {"text": "Bearer [redacted]", "password": "[redacted]"}
    assert "arguments_sha256" not in disk.lines[0]


async def test_long_arguments_are_truncated_and_have_a_digest() -> None:
    disk = Disk()
    async with recorded(disk, arguments=True) as site:
        assert await ask(site, "tools/call", echo("short")) == 200
        assert await ask(site, "tools/call", echo("x" * 300_000)) == 200
    short, long = disk.lines
    assert "arguments_sha256" not in short
    assert long["arguments"]["text"].endswith("x[37860 characters left out]")
    assert long["arguments_sha256"] == sha256(b'{"text":"%s"}' % (b"x" * 300_000)).hexdigest()


async def test_a_call_with_large_arguments_has_a_digest() -> None:
    disk = Disk()
    names = {f"{number}": [number, {"a": {}, "b": []}, None, 1.5, "\u00e9"] for number in range(7_000, 0, -1)}
    async with recorded(disk) as site:
        assert await ask(site, "tools/call", echo("x", password=names)) == 200
    assert [one["outcome"] for one in disk.lines] == ["error"]
    assert disk.lines[0]["arguments_sha256"] == digest_of({"password": names, "text": "x"})


def test_null_arguments_have_a_digest(tmp_path: Path) -> None:
    audit = Audit(AuditFile(tmp_path / "audit"))
    params = {"name": 7, "arguments": None}
    line = json.loads(audit.line('"server":"s"', params, {}, 0.0))
    assert line["arguments_sha256"] == digest_of(params)
    audit.close()


async def test_failed_calls_have_their_outcome() -> None:
    disk = Disk()
    async with recorded(disk) as site:
        for text in ("forbidden", "broken", 7):
            await ask(site, "tools/call", {"name": "echo", "arguments": {"text": text}})
    assert [one["outcome"] for one in disk.lines] == ["insufficient_scope", "error", "error"]
    assert "secret detail" not in json.dumps(disk.lines)


async def test_a_cancelled_call_has_its_outcome() -> None:
    disk = Disk()
    async with recorded(disk) as site, web_socket(site) as socket:
        await socket.initialize()
        await socket.send(site.message("tools/call", {"name": "wait", "arguments": {}}, id=9))
        await socket.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})
        await socket.send(site.message("tools/call", echo("x"), id=10))
        assert json.loads((await socket.next()).data)["id"] == 10
    assert sorted(_outcomes(disk, "tools/call")) == [("echo", "ok"), ("wait", "cancelled")]


@pytest.mark.parametrize("part", [False, True], ids=["the call", "a part of it"])
async def test_a_call_that_timed_out_has_its_outcome(part: bool) -> None:
    disk, app = Disk(), make_server()
    app.budget = replace(app.budget, seconds=60 if part else 0.02)

    @app.tool()
    async def wait_briefly(ctx: Context[Any]) -> None:
        """Wait for ever, or for a moment in a part of the call."""
        with ctx.link.calls.limit_time(ctx.call, 0.02) if part else nullcontext():
            await anyio.sleep_forever()

    audit = Audit(disk, clock=disk.clock)  # type: ignore[arg-type]
    async with app.open(extensions=[audit_calls(audit, "sample")]) as running, talking(running) as peer:
        assert (await peer.call("wait_briefly"))["result"]["isError"]
    audit.close()
    assert _outcomes(disk, "tools/call") == [("wait_briefly", "timeout")]


async def test_lines_contain_a_digest_of_the_session_id() -> None:
    disk = Disk()
    async with recorded(disk) as site:
        session = await site.initialize()
        await site.post(site.message("tools/call", echo("x")), session)
    line = disk.lines[-1]
    assert line["session"] == sha256(session["Mcp-Session-Id"].encode()).hexdigest()[:16]
    assert session["Mcp-Session-Id"] not in json.dumps(line)


async def test_refusals_write_a_line() -> None:
    disk = Disk()
    async with recorded(disk, tokens=("ada",)) as site:
        await ask(site, "tools/call", echo("x"), {"Authorization": "Bearer wrong-token"})
        await ask(site, "tools/call", echo("x"), {"Origin": "http://evil.example"})
        await ask(site, "tools/call", echo("x"), {**ADA, "Content-Type": "text/plain"})
    lines = [(one["outcome"], one["status"], one["server"], "principal" in one) for one in disk.lines]
    assert lines == [
        ("refused", 401, "sample", False),
        ("refused", 403, "sample", False),
        ("refused", 415, "sample", True),
    ]
    assert "wrong-token" not in json.dumps(disk.lines)


UNHANDLED: list[tuple[str, Json, str]] = [
    ("ping", {}, "ok"),
    ("no/such", {}, "error"),
    ("tools/call", {"name": 7}, "error"),
]
"""Requests that reach no handler, and their outcomes."""


async def test_each_request_of_a_session_writes_a_line() -> None:
    disk = Disk()
    async with recorded(disk, tokens=("ada",)) as site:
        session = {**await site.initialize(headers=ADA), **ADA}
        requests = [("logging/setLevel", {"level": "error"}, "ok"), *UNHANDLED]
        for number, (method, params, _) in enumerate(requests):
            await site.post(site.message(method, params, id=number), session)
        await site.client.delete("/mcp", headers=session)
    lines = [(one["method"], one["outcome"]) for one in disk.lines]
    assert lines == [("initialize", "ok"), *((one[0], one[2]) for one in requests), ("DELETE", "ok")]
    assert {one["principal"] for one in disk.lines} == {f"token-{sha256(b'ada').hexdigest()[:12]}"}
    assert len({one["session"] for one in disk.lines[1:]}) == 1


async def test_each_request_of_a_websocket_writes_a_line() -> None:
    disk = Disk()
    async with recorded(disk) as site, web_socket(site) as socket:
        await socket.initialize()
        for method, params, _ in UNHANDLED:
            await socket.request(method, params)
        await socket.frame(1, b"no JSON")
        await socket.next()
    lines = [(one["method"], one["outcome"]) for one in disk.lines]
    assert lines == [("initialize", "ok"), *((one[0], one[2]) for one in UNHANDLED), ("", "error"), ("GET", "ok")]


async def test_each_stateless_request_writes_a_line() -> None:
    disk = Disk()
    async with recorded(disk, limits=EndpointLimits(dialects=True)) as site:
        for method, params in [("no/such", {}), ("completion/complete", {}), ("server/discover", {})]:
            await ask(site, method, params)
        await site.client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "mcp/noSuch", "params": {}})
    lines = [(one.get("method"), one["outcome"]) for one in disk.lines]
    assert lines == [
        ("no/such", "error"),
        ("completion/complete", "error"),
        ("server/discover", "ok"),
        ("noSuch", "error"),
    ]


async def test_the_name_of_an_unknown_method_is_truncated_and_redacted() -> None:
    disk = Disk()
    async with recorded(disk) as site:
        await site.post(site.message(f"no/Bearer hush/{'x' * 500}"), await site.initialize())
    method = disk.lines[-1]["method"]
    assert method.startswith("no/")
    assert "hush" not in method
    assert len(method) <= 200


async def test_each_request_of_a_batch_writes_a_line() -> None:
    disk = Disk()
    async with recorded(disk) as site:
        session = await site.initialize("2025-03-26")
        batch = [
            site.message("ping", id=1),
            site.message("no/such", id=2),
            site.message("tools/call", echo("x"), id=3),
        ]
        await site.post(batch, session)
        await site.post([site.message("ping", id=number) for number in range(1_001)], session)
    lines = [(one.get("method"), one["outcome"]) for one in disk.lines[1:]]
    assert lines == [("ping", "ok"), ("no/such", "error"), ("tools/call", "ok"), (None, "refused")]


async def test_requests_for_metrics_and_debug_state_write_a_line() -> None:
    disk = Disk()
    async with recorded(disk, tokens=("ada",)) as site:
        for path in ("/metrics", "/debug/state", "/healthz", "/readyz"):
            await site.client.get(path, headers=ADA)
    lines = [(one["server"], one["path"], one["outcome"], "principal" in one) for one in disk.lines]
    assert lines == [("http", "/metrics", "ok", True), ("http", "/debug/state", "ok", True)]
    async with recorded(disk, trusted_proxies=("10.0.0.1/32",)) as site:
        assert (await site.client.get("/debug/state")).status_code == disk.lines[-1]["status"] == 401


async def test_a_call_cancelled_in_the_queue_writes_a_line() -> None:
    disk, app = Disk(), make_server()
    app.limits = replace(app.limits, concurrent_calls=1, waiting_calls=2, drain_seconds=0)
    audit = Audit(disk, clock=disk.clock)  # type: ignore[arg-type]
    async with app.open(extensions=[audit_calls(audit, "sample")]) as running:
        async with talking(running, STATELESS) as peer:
            await peer.start("wait")
            waiting = await peer.start("echo", text="x")
            await peer.start("greet")
            await peer.answer(await peer.start("echo", text="refused"))
            await peer.cancel(waiting)
            await peer.request("ping")
            assert _outcomes(disk, "tools/call") == [("echo", "error"), ("echo", "cancelled")]
        await running.calls.drain()
    assert sorted(_outcomes(disk, "tools/call")[2:]) == [("greet", "cancelled"), ("wait", "cancelled")]


async def test_refusals_of_a_flood_write_a_line_per_second() -> None:
    disk = Disk()
    limits = EndpointLimits(clients=ClientLimits(per_second=0.001, burst=1))
    async with recorded(disk, limits=limits) as site:
        for _ in range(20):
            await ask(site, "tools/call", echo("x"))
        disk.now += 1
        await ask(site, "tools/call", echo("x"))
    # The call, the first refusal, the count of the others, and a refusal of another second.
    assert [one.get("times") for one in disk.lines] == [None, None, 18, None]


def test_refusals_of_each_principal_are_counted_apart() -> None:
    disk = Disk()
    audit = Audit(disk, clock=disk.clock)
    for key in ("ada", "bob"):
        audit.log_refusal("sample", refuse(429, "too many requests"), Principal(key, key.title(), client="app"))
    named = [(one["principal"], one["name"], one["token_client"]) for one in disk.lines]
    assert named == [("ada", "Ada", "app"), ("bob", "Bob", "app")]


async def test_unauthenticated_requests_are_summed_up() -> None:
    disk = Disk()
    async with recorded(disk, tokens=("ada",)) as site:
        for path in ("/mcp", "/metrics", "/elsewhere"):
            for number in range(10):
                await site.client.get(path, headers={"Authorization": f"Bearer {number}"})
    lines = [(one["server"], one["status"], one.get("times")) for one in disk.lines]
    assert lines == [("sample", 401, None), ("http", 401, None), ("sample", 401, 9), ("http", 401, 19)]


async def test_requests_beyond_the_client_limits_write_a_line() -> None:
    disk = Disk()
    limits = EndpointLimits(clients=ClientLimits(per_second=0.001, burst=4, calls=1))
    async with recorded(disk, limits=limits) as site, web_socket(site) as socket:
        await socket.initialize()
        for number in range(3):
            await socket.send(site.message("tools/call", {"name": "wait", "arguments": {}}, id=number))
        for _ in range(2):
            assert "error" in json.loads((await socket.next()).data)
    refused = [one["reason"].partition(";")[0] for one in disk.lines if one["outcome"] == "refused"]
    assert sorted(refused) == ["too many of your calls are in progress", "too many requests"]


@pytest.mark.parametrize("tool", ["echo", "quick"])
async def test_on_a_full_disk_calls_continue_and_lost_lines_are_counted(
    tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    disk, call = Disk(), {"name": tool, "arguments": {"text": "x"}}
    async with recorded(disk) as site:
        disk.is_full = True
        for _ in range(3):
            assert await ask(site, "tools/call", call) == 200
        metrics = (await site.client.get("/metrics")).text
        disk.is_full = False
        assert await ask(site, "tools/call", call) == 200
    assert 'mcp_audit_unwritten_total{server="sample"} 3.0' in metrics
    assert len(disk.lines) == 1
    assert [one.levelname for one in caplog.records if one.name == "shared.audit"] == ["ERROR", "WARNING"]


async def test_with_required_lines_calls_get_503_until_the_lines_are_written() -> None:
    disk = Disk()
    async with recorded(disk, required=True) as site:
        disk.is_full = True
        assert await ask(site, "tools/call", echo("x")) == 200
        for _ in range(3):
            assert await ask(site, "tools/call", echo("x")) == 503
        not_ready = await site.client.get("/readyz")
        disk.is_full = False
        assert await ask(site, "tools/call", echo("x")) == 503
        disk.now += 1
        assert await ask(site, "tools/call", echo("y")) == 200
        assert (await site.client.get("/readyz")).status_code == 200
    assert len(disk.lines) == 2
    assert not_ready.status_code == 503
    assert not_ready.json()["servers"]["sample"]["reason"].startswith("the audit log can't be written")


async def test_with_required_lines_calls_of_a_websocket_get_an_error() -> None:
    disk = Disk()
    greet, memo = {"name": "greet", "arguments": {"name": "Ada"}}, {"uri": "memo://a"}
    requests: list[tuple[str, Json]] = [("tools/call", echo("x")), ("tools/call", echo("x"))]
    # Also calls that are answered at once.
    requests += [("tools/call", {**echo("x"), "name": "quick"}), ("prompts/get", greet), ("resources/read", memo)]
    requests += [(f"{what}/list", {}) for what in ("tools", "prompts", "resources", "resources/templates")]
    async with recorded(disk, required=True) as site, web_socket(site) as socket:
        await socket.initialize()
        disk.is_full = True
        answers = []
        for method, params in requests:
            await socket.send(site.message(method, params))
            answers.append(json.loads((await socket.next()).data))
    assert "result" in answers[0]
    assert {answer["error"]["code"] for answer in answers[1:]} == {-32603}


def test_waiting_lines_are_written_at_close() -> None:
    disk = Disk()
    disk.is_full = True
    audit = Audit(disk, required=True, clock=disk.clock)  # type: ignore[arg-type]
    for number in range(3):
        audit.write(f'{{"number":{number}}}\n')
    assert audit.is_blocked
    disk.is_full = False
    audit.close()
    assert [one["number"] for one in disk.lines] == [0, 1, 2]


def test_buffered_lines_are_written_at_a_size_limit_or_at_close() -> None:
    disk = Disk()
    audit = Audit(disk, clock=disk.clock)  # type: ignore[arg-type]
    for _ in range(3):
        audit.write_later(json.dumps("x" * 10_000) + "\n")
    assert disk.writes == [2]
    audit.close()
    assert disk.writes == [2, 1]


def test_refusals_do_not_displace_lines_of_calls() -> None:
    disk = Disk()
    disk.is_full = True
    audit = Audit(disk, required=True, clock=disk.clock)  # type: ignore[arg-type]
    for _ in range(MAX_REFUSED + 1):
        audit.log_refusal("sample", refuse(403, "not yours"), Principal("a", "ada"))
    audit.write('{"tool":"drop_table"}\n')
    disk.is_full = False
    audit.close()
    assert (len(disk.lines), disk.lines[-1].get("tool"), audit.lost_lines) == (MAX_REFUSED + 1, "drop_table", 1)


async def test_a_task_writes_its_line_even_if_another_call_ran_meanwhile() -> None:
    disk, release = Disk(), anyio.Event()
    audit = Audit(disk, clock=disk.clock)  # type: ignore[arg-type]
    app = make_server()
    app.limits = replace(app.limits, concurrent_calls=1)

    @app.tool(task="optional")
    async def last() -> str:
        """Last until it is released."""
        await release.wait()
        return "done"

    extensions = [tasks(after_seconds=0.0), audit_calls(audit, "sample")]
    able = {"extensions": {TASKS: {}}}
    async with app.open(extensions=extensions) as running, talking(running, STATELESS, able) as peer:
        first = await peer.start("last")
        echoed = await peer.start("echo", text="x")
        await peer.answer(first)
        await peer.answer(echoed)
        release.set()
        await running.calls.drain()
    assert [one["tool"] for one in disk.lines] == ["echo", "last"]

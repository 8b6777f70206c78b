"""`--otlp` and `--audit` of whole programs: exported spans and counts, trace propagation, and missing receivers."""

import json
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from shared.client.client import Client
from shared.client.connect import connect, connect_stdio
from shared.errors import PeerError
from shared.tracing.trace_context import TraceContext, current
from tests.raw import ROOT, headers_of, request, stateless
from tests.receiver import Receiver, Seen, receiving
from tests.servers.fetch.sites import answer, opened_site
from tests.wire import Wire, listening, serving

PATIENCE = 60.0
EVERYTHING = [sys.executable, "-m", "servers.everything"]
BUNDLE = [sys.executable, "-m", "servers"]
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = TraceContext(TRACE, SPAN, "01", "congo=t61rcWkgMzE")
OFTEN = {"OTEL_BSP_SCHEDULE_DELAY": "100", "OTEL_METRIC_EXPORT_INTERVAL": "200"}


@contextmanager
def part_of(context: TraceContext) -> Any:
    """Makes that span the parent of the work in the block."""
    token = current.set(context)
    try:
        yield
    finally:
        current.reset(token)


@asynccontextmanager
async def started(command: Sequence[str], receiver: Receiver | None, **env: str) -> AsyncIterator[Client]:
    """Yields a stdio client of a server that exports to `receiver`."""
    words = [*command, *([] if receiver is None else ["--otlp", receiver.url])]
    with anyio.fail_after(PATIENCE):
        async with connect_stdio(words, env={**OFTEN, **env}, cwd=ROOT) as client:
            yield client


async def test_a_call_is_a_span_below_the_client_span() -> None:
    async with (
        receiving() as receiver,
        started(EVERYTHING, receiver, OTEL_EXPORTER_OTLP_COMPRESSION="gzip") as client,
    ):
        with part_of(PARENT):
            await client.call_tool("echo", {"text": "a secret"})
        call, tool = await receiver.span("tools/call echo"), await receiver.span("execute_tool echo")
        assert receiver.headers[0]["content-encoding"] == "gzip"
    assert (call.trace, call.parent, call.state, call.kind) == (TRACE, SPAN, PARENT.state, "server")
    assert (tool.trace, tool.parent, tool.kind) == (TRACE, call.id, "internal")
    assert call.service == "everything"
    assert call.attributes == {
        "mcp.server.name": "everything",
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "jsonrpc.request.id": call.attributes["jsonrpc.request.id"],
        "gen_ai.tool.name": "echo",
        "gen_ai.operation.name": "execute_tool",
        "network.transport": "pipe",
    }
    assert "secret" not in str(receiver.spans)


async def test_small_and_large_reads_have_the_same_spans(tmp_path: Path) -> None:
    (tmp_path / "small.txt").write_text("small")
    (tmp_path / "large.txt").write_text("large\n" * 20_000)
    filesystem = [sys.executable, "-m", "servers.filesystem", str(tmp_path)]
    async with receiving() as receiver, started(filesystem, receiver) as client:
        for name in ("small.txt", "large.txt"):
            assert not (await client.call_tool("read_text_file", {"path": name})).is_error
    calls = [one.id for one in receiver.spans if one.name == "tools/call read_text_file"]
    tools = [one.parent for one in receiver.spans if one.name == "execute_tool read_text_file"]
    assert len(calls) == 2
    assert sorted(tools) == sorted(calls)


@pytest.mark.slow
async def test_spans_of_failed_calls_have_an_error_type() -> None:
    async with receiving() as receiver, started(EVERYTHING, receiver) as client:
        assert (await client.call_tool("fail", {"how": "tool"})).is_error
        for how in ("protocol", "crash"):
            with pytest.raises(PeerError):
                await client.call_tool("fail", {"how": how})
        await receiver.until(lambda: len([one for one in receiver.spans if one.name == "tools/call fail"]) == 3)
    failed = [one for one in receiver.spans if one.name == "tools/call fail"]
    kinds = [one.attributes["error.type"] for one in failed]
    assert kinds == ["tool_error", failed[1].attributes["rpc.response.status_code"], "RuntimeError"]
    assert all(one.has_failed for one in failed)
    assert failed[2].message == ""


@pytest.mark.slow
async def test_traceparent_in_the_request_overrides_the_http_header() -> None:
    other = TraceContext("1" * 32, "2" * 16)
    async with receiving() as receiver:
        command = [*EVERYTHING, "--transport", "http", "--port", "0", "--otlp", receiver.url]
        async with serving(command, env={**os.environ, **OFTEN}) as base:
            async with connect(f"{base}/mcp") as client:
                with part_of(PARENT):
                    await client.list_tools()
            await _post(base, "prompts/list", {}, other.to_fields())
            await _post(base, "resources/list", PARENT.to_fields(), other.to_fields())
            tools, prompts = await receiver.span("tools/list"), await receiver.span("prompts/list")
            resources = await receiver.span("resources/list")
    assert (tools.trace, tools.parent) == (TRACE, SPAN)
    assert (prompts.trace, prompts.parent) == (other.trace_id, other.span_id)
    assert (resources.trace, resources.parent) == (TRACE, SPAN)
    assert tools.attributes["network.transport"] == "tcp"


async def _post(base: str, method: str, meta: dict[str, Any], headers: dict[str, str]) -> None:
    message = stateless(request(1, method))
    message["params"]["_meta"] |= meta
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        answered = await client.post(f"{base}/mcp", json=message, headers={**headers_of(message), **headers})
    assert answered.status_code == 200, answered.text


@pytest.mark.slow
@pytest.mark.parametrize("gateway_sends", [True, False], ids=["gateway with spans", "gateway without"])
async def test_a_trace_goes_through_a_gateway(gateway_sends: bool, tmp_path: Path) -> None:
    async with receiving() as receiver:
        upstream = [*EVERYTHING, "--otlp", receiver.url]
        configuration = tmp_path / "servers.yaml"
        behind = {"command": upstream, "cwd": str(ROOT), "env": OFTEN}
        configuration.write_text(json.dumps({"servers": {"behind": behind}}))
        command = [*BUNDLE, "serve", "--config", str(configuration), "--port", "0"]
        command += ["--otlp", receiver.url] if gateway_sends else []
        env = {**os.environ, **OFTEN}
        async with serving(command, env=env) as base, connect(f"{base}/behind/mcp") as client:
            with part_of(PARENT):
                await client.call_tool("echo", {"text": "hi"})
            last = await receiver.span("execute_tool echo")
            spans = {"": last}
            if gateway_sends:
                await receiver.span("tools/call echo", **{"mcp.server.name": "behind"})
            await receiver.span("tools/call echo", **{"mcp.server.name": "everything"})
            spans = {one.id: one for one in receiver.spans}
    line = list(_up_from(last, spans))
    assert {one.trace for one in line} == {TRACE}
    assert line[-1].parent == SPAN
    of_gateway = [("tools/call echo", "client", "mcp-servers"), ("tools/call echo", "server", "mcp-servers")]
    assert [(one.name, one.kind, one.service) for one in line] == [
        ("execute_tool echo", "internal", "everything"),
        ("tools/call echo", "server", "everything"),
        *(of_gateway if gateway_sends else []),
    ]


def _up_from(span: Seen, spans: dict[str, Seen]) -> Any:
    while True:
        yield span
        if span.parent not in spans:
            return
        span = spans[span.parent]


@pytest.mark.slow
async def test_the_span_of_a_member_is_below_that_of_the_joined_server() -> None:
    async with receiving() as receiver:
        command = [*BUNDLE, "serve", "everything", "--join", "--port", "0", "--otlp", receiver.url]
        async with serving(command, env={**os.environ, **OFTEN}) as base, connect(f"{base}/mcp") as client:
            await client.call_tool("echo", {"text": "hi"})
            door = await receiver.span("tools/call echo", **{"mcp.server.name": "joined"})
            inner = await receiver.span("tools/call echo", **{"mcp.server.name": "everything"})
            by = {"server": "joined", "method": "tools/call", "tool": "other"}
            await receiver.until(lambda: receiver.count("mcp.requests", **by))
    assert (inner.parent, inner.kind, door.kind) == (door.id, "internal", "server")


@pytest.mark.slow
async def test_a_statement_is_a_span_without_its_text() -> None:
    command = [sys.executable, "-m", "servers.sqlite", "--demo"]
    async with receiving() as receiver, started(command, receiver) as client:
        await client.call_tool("read_query", {"query": "-- a comment\n select 'hidden' AS word"})
        tool = await receiver.span("execute_tool read_query")
        (query,) = [one for one in receiver.spans if one.attributes.get("db.system.name") == "sqlite"]
    assert (query.parent, query.kind) == (tool.id, "client")
    assert query.attributes["db.operation.name"] == "SELECT"
    assert query.name == f"SELECT {query.attributes['db.namespace']}"
    assert "hidden" not in str(receiver.spans)


@pytest.mark.slow
async def test_fetching_a_page_is_a_span_without_its_path() -> None:
    page = answer("<p>Hello</p>", **{"Content-Type": "text/html"})
    async with receiving() as receiver, opened_site({"/hidden": page, "/robots.txt": answer(status=404)}) as site:
        allowed = ["--allow-private", "127.0.0.1", "--allow-port", str(site.port)]
        async with started([sys.executable, "-m", "servers.fetch", *allowed], receiver) as client:
            await client.call_tool("fetch", {"url": site.url("/hidden")})
            tool, load = await receiver.span("execute_tool fetch"), await receiver.span("GET")
    assert (load.parent, load.kind) == (tool.id, "client")
    assert load.attributes == {
        "http.request.method": "GET",
        "server.address": "127.0.0.1",
        "http.response.status_code": 200,
        "mcp.fetch.from_cache": False,
    }
    assert "hidden" not in str(receiver.spans)


@pytest.mark.slow
async def test_otlp_exports_the_counts_of_the_metrics() -> None:
    async with receiving() as receiver:
        command = [*EVERYTHING, "--transport", "http", "--port", "0", "--otlp", receiver.url]
        async with serving(command, env={**os.environ, **OFTEN}) as base:
            async with connect(f"{base}/mcp") as client:
                await client.call_tool("fail", {"how": "tool"})
            by = {"server": "everything", "method": "tools/call", "tool": "fail"}
            await receiver.until(lambda: receiver.count("mcp.request.errors", **by, kind="tool"))
            exported = {name for name, _ in receiver.counts}
            assert receiver.count("mcp.server.up", server="everything") == 1
    assert receiver.count("mcp.requests", **by) == 1
    assert receiver.count("mcp.request.duration", **by) == 1
    assert receiver.count("mcp.limited", server="everything", limit="rate") == 0
    assert exported >= {"mcp.sessions", "mcp.streams", "mcp.subscriptions"}


@pytest.mark.slow
async def test_log_lines_contain_trace_and_span_ids() -> None:
    async with Wire([*EVERYTHING, "--log-format", "json"], cwd=ROOT) as wire:
        await wire.initialize()
        call = {"name": "fail", "arguments": {"how": "crash"}, "_meta": PARENT.to_fields()}
        await wire.request("tools/call", call)
        await wire.close_stdin()
        await wire.wait()
    (line,) = [json.loads(text) for text in wire.stderr.splitlines() if "a handler failed" in text]
    assert (line["trace_id"], line["span_id"]) == (TRACE, SPAN)


@pytest.mark.slow
@pytest.mark.parametrize("hangs", [False, True], ids=["nobody listens", "nobody answers"])
async def test_an_unreachable_receiver_delays_nothing(hangs: bool) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        if not hangs:
            silent.close()
        env = {**os.environ, **OFTEN, "OTEL_EXPORTER_OTLP_TIMEOUT": "1" if not hangs else "10"}
        command = [*EVERYTHING, "--transport", "http", "--port", "0", "--otlp", f"http://127.0.0.1:{port}"]
        async with Wire(command, env=env, cwd=ROOT) as process:
            base = await listening(process)
            with anyio.fail_after(PATIENCE):
                async with connect(f"{base}/mcp") as client:
                    for _ in range(3):
                        await client.call_tool("echo", {"text": "hi"})
                while not hangs and "does not accept spans" not in process.stderr:
                    await anyio.lowlevel.checkpoint()
            process.terminate()
            began = time.monotonic()
            assert await process.wait() == 0
            assert time.monotonic() - began < 8
    assert process.stderr.count("does not accept spans and metrics; continuing without them") == int(not hangs), (
        process.stderr
    )
    assert "Traceback" not in process.stderr


TOKEN = "a-token-of-the-test"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("joined", "way", "listener"), [([], "/everything/mcp", "everything"), (["--join"], "/mcp", "joined")]
)
async def test_calls_and_refusals_of_several_servers_are_audited(
    joined: list[str], way: str, listener: str, tmp_path: Path
) -> None:
    path = tmp_path / "audit"
    command = [*BUNDLE, "serve", "everything", *joined, "--port", "0", "--audit", str(path)]
    with anyio.fail_after(PATIENCE):
        async with serving(command, env={**os.environ, "MCP_TOKEN": TOKEN}) as base:
            async with connect(f"{base}{way}", token=TOKEN) as client:
                await client.call_tool("echo", {"text": "hi"})
            async with httpx.AsyncClient(trust_env=False) as stranger:
                assert (await stranger.post(f"{base}{way}")).status_code == 401
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert ("everything", "echo", "ok") in [(one["server"], one.get("tool"), one["outcome"]) for one in entries]
    assert [one["server"] for one in entries if one["outcome"] == "refused"] == [listener]
    assert TOKEN not in path.read_text()

"""The endpoint: large bodies, insufficient scopes, and principals with settings of their own."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest
from anyio.abc import SocketAttribute
from pydantic import BaseModel

from shared.auth.policy import Policy
from shared.extensions.access import access
from shared.extensions.dialects import DIALECTS
from shared.extensions.narrowing import narrowing
from shared.protocol.http.rules import HttpRequest
from shared.protocol.identity import Principal
from shared.protocol.types.base import Implementation
from shared.server.dispatch.context import Context
from shared.server.run import Run
from shared.server.running import Opening
from shared.server.server import Server
from shared.stores.memory import Stores
from shared.transports.http.limits.endpoint_limits import EndpointLimits
from shared.transports.http.streamable import bodies
from tests.quiet import quiet
from tests.redis_stores import InRedis
from tests.shared.transports.http.http_wire import Site, events, listening, make_server, merged, served
from tests.shared.transports.http.sse_wire import streaming
from tests.shared.transports.http.web_socket import web_socket

COUNT = 8
LARGE = "x" * 100_000


@pytest.mark.parametrize("stateless", [True, False])
async def test_one_large_body_is_decoded_per_turn_of_the_event_loop(stateless: bool) -> None:
    app, turns, read = make_server(), [0], list[int]()

    @app.tool()
    async def take(text: str) -> None:
        """Note the turn."""
        read.append(turns[0])

    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(served(app))
        session = {} if stateless else await site.initialize()
        streams = []
        for _ in range(COUNT):
            params = {"name": "take", "arguments": {"text": LARGE}}
            message, headers = (
                site.stateless("tools/call", params) if stateless else (site.message("tools/call", params), session)
            )
            body = json.dumps(message).encode()
            lines = [f"{name}: {value}" for name, value in merged(headers)]
            lines.append(f"Content-Length: {len(body)}")
            streams.append(await stack.enter_async_context(site.raw(*lines, body=body[:-1])))
        await quiet()
        for stream in streams:
            os.write(stream.extra(SocketAttribute.raw_socket).fileno(), b"}")

        def turn() -> None:
            turns[0] += 1
            turning[0] = loop.call_soon(turn)

        loop = asyncio.get_running_loop()
        turning = [loop.call_soon(turn)]
        for stream in streams:
            assert (await stream.receive()).startswith(b"HTTP/1.1 200")
        turning[0].cancel()
    assert len(read) == COUNT
    assert len(set(read)) == COUNT


async def test_unread_bodies_of_a_client_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_MAX_BODIES_BYTES", 0)
    async with served(limits=EndpointLimits(body_bytes=120_000)) as site, AsyncExitStack() as stack:
        lines = [*(f"{name}: {value}" for name, value in merged({})), "Content-Length: 100001"]
        for _ in range(2):
            await stack.enter_async_context(site.raw(*lines, body=LARGE.encode()))
        # The first ones may come before the two bodies are read.
        answers = [await site.post(LARGE.encode()) for _ in range(COUNT)]
        assert (answers[-1].status_code, "too many bytes" in answers[-1].text) == (429, True)


async def test_room_for_large_bodies_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_MAX_BODIES_BYTES", 0)  # the minimum: four of the largest bodies
    async with served(limits=EndpointLimits(body_bytes=120_000)) as site:
        assert [(await site.post(LARGE.encode())).status_code for _ in range(COUNT)] == [400] * COUNT


async def test_the_slot_of_a_stateless_request_is_released() -> None:
    async with served(limits=EndpointLimits(requests=2)) as site:
        assert [(await site.call("tools/list")).status_code for _ in range(COUNT)] == [200] * COUNT


# Insufficient scopes
ECHO = {"name": "echo", "arguments": {"text": "x"}}


class Scoped:
    """Authenticates every request, with the scopes of a header."""

    async def authenticate(self, request: HttpRequest) -> Principal | None:
        return Principal("ada", "ada", frozenset((request.headers.get("x-scopes") or "").split()))


@asynccontextmanager
async def guarded() -> AsyncIterator[Site]:
    limits = EndpointLimits(dialects=True)
    async with (
        make_server().open(extensions=[DIALECTS, access(Policy("sample"))]) as running,
        listening(running, authenticator=Scoped(), limits=limits) as site,
    ):
        yield site


def challenge_of(answer: Any) -> str:
    assert answer.status_code == 403, answer.text
    assert answer.json()["error"]["data"] == {"scopes": ["sample:write"]}
    challenge: str = answer.headers["www-authenticate"]
    return challenge


def names_scope(challenge: str) -> bool:
    return challenge.startswith('Bearer error="insufficient_scope"') and 'scope="sample:write"' in challenge


async def test_a_session_request_without_its_scope_is_challenged() -> None:
    async with guarded() as site:
        session = await site.initialize()
        assert names_scope(challenge_of(await site.post(site.message("tools/call", ECHO), session)))


async def test_a_narrower_token_reads_no_stream_of_a_session_that_used_more_scopes() -> None:
    async with guarded() as site:
        session = await site.initialize()
        wide, narrow = ({**session, "x-scopes": f"sample:{scope}"} for scope in ("write", "read"))
        for headers in (wide, narrow):
            async with site.client.stream("GET", "/mcp", headers=merged(headers)) as stream:
                assert stream.status_code == 200
            await site.idle()
        assert (await site.post(site.message("tools/call", ECHO), wide)).status_code == 200
        for resumed in ({}, {"Last-Event-ID": "0.1"}):
            answer = await site.client.get("/mcp", headers=merged({**narrow, **resumed}))
            assert names_scope(challenge_of(answer))
        async with site.client.stream("GET", "/mcp", headers=merged(wide)) as stream:
            assert stream.status_code == 200


async def test_a_stream_of_a_narrower_token_ends_when_a_call_needs_more_scopes() -> None:
    async with guarded() as site:
        session = await site.initialize()
        wide, narrow = ({**session, "x-scopes": f"sample:{scope}"} for scope in ("write", "read"))
        for headers in (narrow, wide):
            async with site.client.stream("GET", "/mcp", headers=merged(headers)) as stream:
                assert (await site.post(site.message("tools/call", ECHO), wide)).status_code == 200
                site.running.changes.tools()
                if headers is narrow:
                    with pytest.raises(httpx.RemoteProtocolError):
                        assert [event async for event in events(stream)] == []
                else:  # with the scope that the narrow token lacks
                    assert (await anext(events(stream)))["method"] == "notifications/tools/list_changed"


@pytest.mark.parametrize("kind", ["memory", "redis"])
async def test_scopes_used_in_a_session_are_shared_between_replicas(
    kind: str, request: pytest.FixtureRequest
) -> None:
    stores = InRedis(request.getfixturevalue("redis_server")) if kind == "redis" else Stores()
    app, extensions = make_server(), [access(Policy("sample"))]
    async with (
        app.open(stores=stores, extensions=extensions) as one,
        app.open(stores=stores, extensions=extensions) as other,
        listening(one, authenticator=Scoped()) as here,
        listening(other, authenticator=Scoped()) as there,
    ):
        session = await here.initialize()
        wide, narrow = ({**session, "x-scopes": f"sample:{scope}"} for scope in ("write", "read"))
        assert (await here.post(here.message("tools/call", ECHO), wide)).status_code == 200
        assert names_scope(challenge_of(await there.client.get("/mcp", headers=merged(narrow))))
        async with there.client.stream("GET", "/mcp", headers=merged(wide)) as stream:
            assert stream.status_code == 200


async def test_a_dialect_request_without_its_scope_is_forbidden() -> None:
    async with guarded() as site:
        message = {"jsonrpc": "2.0", "id": 1, "method": "mcp/tool/execute"}
        message["params"] = {"toolId": "sample/echo", "inputs": {"text": "x"}}
        assert (await site.post(message)).status_code == 403


async def test_a_websocket_call_without_its_scope_is_answered_with_an_error() -> None:
    async with guarded() as site, web_socket(site) as socket:
        await socket.initialize()
        answer = await socket.request("tools/call", ECHO)
        assert answer["error"]["data"] == {"scopes": ["sample:write"]}


async def test_a_batched_call_without_its_scope_is_answered_with_an_error() -> None:
    async with guarded() as site:
        session = await site.initialize("2025-03-26")
        batch = [site.message("ping"), site.message("tools/call", ECHO)]
        async with site.stream(batch, session) as answer:
            assert answer.status_code == 200
            if answer.headers["content-type"].startswith("application/json"):
                answers = (await answer.aread()) and answer.json()
            else:
                answers = [one async for one in events(answer)]
        assert [one["error"]["data"] for one in answers if "error" in one] == [{"scopes": ["sample:write"]}]


# Settings per principal
CALL = {"name": "whose", "arguments": {}}


class Settings(BaseModel):
    notes: str = "all"


class Named:
    """Authenticates every request by the name in a header."""

    async def authenticate(self, request: HttpRequest) -> Principal | None:
        name = request.headers.get("x-name") or ""
        return Principal(f"key of {name}", name)


@asynccontextmanager
async def narrowed() -> AsyncIterator[Site]:
    app = Server[str](Implementation(name="notes", version="1"), settings=Settings)

    @app.lifespan
    async def living(opening: Opening) -> AsyncIterator[str]:
        yield opening.settings.notes

    @app.tool(read_only=True)
    async def whose(ctx: Context[str]) -> str:
        """Say whose notes these are."""
        return ctx.state

    @app.on_ready
    async def ready(running: Run[str]) -> str | None:
        return "the notes are gone" if running.state == "gone" else None

    async with (
        app.open(extensions=[narrowing({"ada": Settings(notes="ada's")})]) as running,
        listening(running, authenticator=Named()) as site,
    ):
        yield site


def text_of(answer: Any) -> str:
    text: str = answer["result"]["content"][0]["text"]
    return text


async def test_each_principal_gets_its_own_settings_on_every_transport() -> None:
    async with narrowed() as site:
        for name, notes in (("ada", "ada's"), ("bob", "all")):
            sender = {"X-Name": name}
            message, headers = site.stateless("tools/call", CALL)
            assert text_of((await site.post(message, {**headers, **sender})).json()) == notes
            session = await site.initialize(headers=sender)
            assert text_of((await site.post(site.message("tools/call", CALL), session)).json()) == notes
            async with web_socket(site, {"X-Name": name}) as socket:
                await socket.initialize()
                assert text_of(await socket.request("tools/call", CALL)) == notes
            async with streaming(site, headers=sender) as stream:
                await stream.initialize()
                assert await stream.call("whose") == notes


async def test_readyz_reports_a_narrowed_run_that_is_not_ready() -> None:
    async with narrowed() as site:
        headers = {"X-Name": "ada"}
        assert (await site.client.get("/readyz", headers=headers)).status_code == 200
        site.running.parts.for_name("ada").state = "gone"
        answer = await site.client.get("/readyz", headers=headers)
        assert answer.status_code == 503
        assert "gone" in answer.text

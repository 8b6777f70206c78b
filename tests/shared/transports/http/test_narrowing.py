"""Principals with a run of the server to themselves, on every transport of HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel

from shared.extensions.narrowing import narrowing
from shared.protocol.http.rules import HttpRequest
from shared.protocol.identity import Principal
from shared.protocol.types.base import Implementation
from shared.server.context import Context
from shared.server.running import Opening, Running
from shared.server.server import Server
from tests.shared.transports.http.http_wire import Site, listening
from tests.shared.transports.http.sse_wire import streaming
from tests.shared.transports.http.web_socket import web_socket

CALL = {"name": "whose", "arguments": {}}
NAMES = ["ada", "bob"]
OF = {"ada": "ada's", "bob": "all"}


class Settings(BaseModel):
    notes: str = "all"


class Named:
    """Knows everybody by a header."""

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
    async def ready(running: Running[str]) -> str | None:
        return "the notes are gone" if running.state == "gone" else None

    async with (
        app.open(extensions=[narrowing({"ada": Settings(notes="ada's")})]) as running,
        listening(running, authenticator=Named()) as site,
    ):
        yield site


def said(answer: Any) -> str:
    text: str = answer["result"]["content"][0]["text"]
    return text


@pytest.mark.parametrize("name", NAMES)
async def test_a_request_without_a_session(name: str) -> None:
    async with narrowed() as site:
        message, headers = site.stateless("tools/call", CALL)
        assert said((await site.post(message, {**headers, "X-Name": name})).json()) == OF[name]


@pytest.mark.parametrize("name", NAMES)
async def test_a_session(name: str) -> None:
    async with narrowed() as site:
        session = await site.initialize(headers={"X-Name": name})
        assert said((await site.post(site.message("tools/call", CALL), session)).json()) == OF[name]


@pytest.mark.parametrize("name", NAMES)
async def test_a_websocket(name: str) -> None:
    async with narrowed() as site, web_socket(site, {"X-Name": name}) as socket:
        await socket.initialize()
        assert said(await socket.request("tools/call", CALL)) == OF[name]


@pytest.mark.parametrize("name", NAMES)
async def test_http_with_sse(name: str) -> None:
    async with narrowed() as site, streaming(site, headers={"X-Name": name}) as stream:
        await stream.initialize()
        assert await stream.call("whose") == OF[name]


async def test_a_run_that_is_not_ready_is_told() -> None:
    async with narrowed() as site:
        headers = {"X-Name": "ada"}
        assert (await site.client.get("/readyz", headers=headers)).status_code == 200
        site.running.for_name("ada").state = "gone"
        answer = await site.client.get("/readyz", headers=headers)
        assert answer.status_code == 503
        assert "gone" in answer.text

"""Two principals and an anonymous client of one real server over HTTP, each with its own token."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from pydantic import BaseModel

from shared.server.run import Run
from shared.server.server import Server
from tests.shared.transports.http.http_wire import PATIENCE, Json, Site, events, listening

TOKENS = ("token-of-alice-0123456789", "token-of-bob-9876543210ab")
FORMS: Json = {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


class Party:
    """Somebody at a server, with or without a session."""

    def __init__(self, site: Site, token: str | None, session: Json | None = None) -> None:
        self.site = site
        self.identity: Json = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.session = session
        """The headers of its session; None where each request stands for itself."""

    async def opened(self) -> "Party":
        """The same one with a session of its own."""
        party = Party(self.site, None)
        party.identity = self.identity
        party.session = await self.site.initialize(capabilities=FORMS, headers=self.identity)
        return party

    def holding(self, theirs: "Party") -> "Party":
        """The same one, who names the session of somebody else."""
        party = Party(self.site, None)
        party.identity = self.identity
        party.session = {**(theirs.session or {}), **self.identity}
        return party

    @property
    def headers(self) -> Json:
        """What goes with each request of its session."""
        return self.identity if self.session is None else self.session

    def message(self, method: str, params: Json | None = None, **more: Any) -> tuple[Json, Json]:
        """A request in its era, and its headers."""
        if self.session is not None:
            return self.site.message(method, {**(params or {}), **more}), self.session
        message, headers = self.site.stateless(method, {**(params or {}), **more}, **{_CAPABILITIES: FORMS})
        return message, {**headers, **self.identity}

    async def ask(self, method: str, params: Json | None = None, **more: Any) -> Json:
        """The answer to a request, past all that comes before it."""
        message, headers = self.message(method, params, **more)
        return await self.answer_to(message, headers)

    async def answer_to(self, message: Json, headers: Json) -> Json:
        """The answer to this request."""
        async with self.site.stream(message, headers) as response:
            if response.headers["content-type"].startswith("application/json"):
                await response.aread()
                return response.json()  # type: ignore[no-any-return]
            async for event in events(response):
                if event.get("id") == message["id"] and "method" not in event:
                    return event
        raise AssertionError(f"{message['method']} had no answer")

    async def call(self, tool: str, **arguments: Any) -> Json:
        """The result of a tool."""
        answer = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        result: Json = answer["result"]
        return result

    async def text(self, tool: str, **arguments: Any) -> str:
        """What a tool says."""
        content = (await self.call(tool, **arguments))["content"]
        return "".join(block.get("text", "") for block in content)

    async def post(self, message: Any, **headers: Any) -> httpx.Response:
        """POSTs a message of any kind."""
        return await self.site.post(message, {**self.headers, **headers})


@asynccontextmanager
async def parties(
    app: Server[Any], settings: BaseModel | None = None, tokens: tuple[str, ...] = TOKENS, **options: Any
) -> AsyncIterator[tuple[Party, Party]]:
    """Two parties at a server. Where there are no tokens both are nobody, at two addresses."""
    async with app.open(settings) as running, parties_at(running, tokens, **options) as both:
        yield both


@asynccontextmanager
async def parties_at(
    running: Run[Any], tokens: tuple[str, ...] = TOKENS, **options: Any
) -> AsyncIterator[tuple[Party, Party]]:
    """The same at a server that was opened already."""
    async with listening(running, tokens=tokens, **options) as site, elsewhere(site) as apart:
        if tokens:
            yield Party(site, tokens[0]), Party(site, tokens[1])
        else:
            yield Party(site, None), Party(apart, None)


@asynccontextmanager
async def elsewhere(site: Site) -> AsyncIterator[Site]:
    """The same server, for a client with another address."""
    transport = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
    url = f"http://127.0.0.1:{site.port}"
    async with httpx.AsyncClient(transport=transport, base_url=url, timeout=PATIENCE) as client:
        yield Site(site.running, site.port, site.stop, client)

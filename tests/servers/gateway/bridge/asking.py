"""A server with sessions that asks its clients, and a bridge to it whose limits the test chooses."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import anyio

from servers.gateway.bridge.bridge import CallRoute
from servers.gateway.bridge.upstream import Upstream
from shared import Implementation, Run, Server, elicit_form, list_roots
from shared import sample as completion
from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.concurrency import TaskSet, background
from shared.errors import MissingCapability, PeerError, RpcError
from shared.protocol.methods import PROTOCOL_METHODS, Method
from shared.protocol.wire.jsonrpc import Response
from shared.server.dispatch.connection import Connection
from shared.server.dispatch.context import Context
from shared.server.extension import Extension
from shared.server.features import Handler
from shared.server.running import Opening
from tests.shared.client.small import Small
from tests.shared.server.peer import Json, Peer

FORMS: Json = {"elicitation": {"form": {}}}
EVERYTHING: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
SCHEMA: Json = {"type": "object", "properties": {"name": {"type": "string"}}}


def named(name: str) -> Json:
    """The answer to a form that asks for a name."""
    return {"action": "accept", "content": {"name": name}}


class Asking(Small):
    """The small server with a few tools more, that is reached in sessions only."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = 0
        """How many sessions there were."""
        self.ended = 0
        asking = (self.ask_all, self.ask_both, self.ask_for_ever, self.ask_then_wait, self.visit, self.enter)
        for function in (*asking, self.wait_for_roots, self.tell_refusal, self.who, self.keep, self.hear):
            self.app.tool()(function)
        self.kept: dict[Any, str] = {}
        self.heard = anyio.Event()
        self.going_on = anyio.Event()
        self.left = anyio.Event()
        """Set when a session has ended."""
        self.asks_for_roots = False
        """Whether sessions begin with that, as those of many servers do."""
        self.was_visited = False
        self.links: list[Connection] = []
        self.roots_told = anyio.Event()
        self.roots_are: Json = {}
        self.app.lifespan(self._greeting)

    async def _greeting(self, opening: Opening) -> AsyncIterator[None]:
        async with background() as tasks:
            opening.on_handshake(lambda link: tasks.start_soon(self._greet, link))
            yield

    async def _greet(self, link: Connection) -> None:
        self.links.append(link)
        if not self.asks_for_roots:
            return
        with suppress(MissingCapability):  # the bridge's own connection declares nothing
            answer = await link.ask_standalone(list_roots())
            self.roots_are = answer.result if isinstance(answer, Response) else {"error": answer.message}
            self.roots_told.set()

    def upstream(self, **options: Any) -> Upstream:
        """The way to it, in this process, while it is open."""
        return Upstream("asking", self.session, **options)

    @asynccontextmanager
    async def session(self, options: ClientOptions) -> AsyncIterator[Client]:
        """A client in a session of its own."""
        self.opened += 1
        try:
            async with self.line() as end, Client(end, replace(options, mode="handshake")) as client:
                yield client
        finally:
            self.ended += 1
            self.left.set()

    def away(self) -> Upstream:
        """The way to nobody."""

        @asynccontextmanager
        async def connect(_options: ClientOptions) -> AsyncIterator[Client]:
            raise ConnectionError("nobody is there")
            yield

        return Upstream("asking", connect)

    async def ask_all(self, ctx: Context[None]) -> str:
        """Ask three things at once."""
        message = {"role": "user", "content": {"type": "text", "text": "?"}}
        answers = await ctx.inputs(
            {
                "name": elicit_form("Your name?", SCHEMA),
                "thought": completion({"messages": [message], "maxTokens": 9}),
                "roots": list_roots(),
            }
        )
        roots = " ".join(root.uri for root in answers["roots"].roots)
        return f"{answers['name'].content['name']} {answers['thought'].text} {roots}"

    async def ask_both(self, ctx: Context[None]) -> str:
        """Ask, report, and ask again while nobody may be there."""
        await ctx.progress(1, 3, "asking")
        first = await ctx.inputs({"first": elicit_form("Your first name?", SCHEMA)})
        await ctx.progress(2, 3, "asked")
        await ctx.log("warning", "asked once")
        last = await ctx.inputs({"last": elicit_form("Your last name?", SCHEMA)})
        return f"{first['first'].content['name']} {last['last'].content['name']}"

    async def ask_for_ever(self, ctx: Context[None]) -> str:
        """Ask on and on."""
        try:
            while True:
                await ctx.inputs({"again": elicit_form("Again?", SCHEMA)})
        finally:
            self.cancelled.set()

    async def ask_then_wait(self, ctx: Context[None]) -> str:
        """Ask, and wait for ever."""
        try:
            await ctx.inputs({"name": elicit_form("Your name?", SCHEMA)})
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()
        return "never"

    async def wait_for_roots(self) -> str:
        """Tell the first root, once the client has told it."""
        await self.roots_told.wait()
        uri: str = self.roots_are["roots"][0]["uri"]
        return uri

    async def enter(self) -> str:
        """Refuse before a page was visited."""
        if not self.was_visited:
            visit = {"mode": "url", "elicitationId": "v1", "url": "https://example.org/in", "message": "Come in."}
            raise RpcError("visit the page first", code=-32042, data={"elicitations": [visit]})
        return "entered"

    def visit_over(self) -> None:
        """The page was visited, which is told in all sessions."""
        self.was_visited = True
        for link in self.links:
            link.session.notify_session("notifications/elicitation/complete", {"elicitationId": "v1"})
            link.send_soon()

    async def tell_refusal(self, ctx: Context[None]) -> str:
        """Ask for roots, and tell the error that comes of it."""
        try:
            await ctx.forward_questions({"roots": ("roots/list", {})}, None)
        except PeerError as error:
            return error.message
        return "the client has answered"

    async def who(self, ctx: Context[None]) -> str:
        """Tell who calls and what it can do."""
        info = ctx.peer.info or {}
        return f"{info.get('name')}: {', '.join(sorted(ctx.peer.capabilities))}"

    async def keep(self, ctx: Context[None], word: str = "") -> str:
        """Tell what this session has kept before, and keep a word."""
        before, self.kept[ctx.link] = self.kept.get(ctx.link, "nothing"), word
        return before

    async def hear(self, ctx: Context[None], word: str) -> str:
        """Report and log a word, twice: before and after it is told to go on."""
        for number in (1, 2):
            await ctx.progress(number, 2, word)
            await ctx.log("warning", word)
            self.heard.set()
            await self.going_on.wait()
        return word

    async def visit(self, ctx: Context[None]) -> str:
        """Have a page visited."""
        return (await ctx.ask_to_visit("visit", "Please look.", "https://example.org/look")).action


@asynccontextmanager
async def placed(make: Callable[[TaskSet], CallRoute]) -> AsyncIterator[Run[Any]]:
    """A server that forwards to the place that `make` gives; its calls end before the place does."""
    failed: list[BaseException] = []
    crew = TaskSet(failed.append)
    place = make(crew)

    async def forward(_running: Any, context: Context[Any], params: Any) -> Json:
        return await place.call(context, params)

    def around(method: Method, handler: Handler) -> Handler:
        return forward if method.name in PROTOCOL_METHODS else handler

    capabilities: Json = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}}
    server = Server[None](
        Implementation(name="gate", version="1"),
        capabilities=capabilities,
        extensions=[Extension[Any]("forwarding", around=around)],
    )
    with anyio.fail_after(60):
        try:
            async with server.open() as running:
                yield running
        finally:
            if (close := getattr(place, "close", None)) is not None:
                close()
            await crew.stop()
    assert not failed


async def round_of(peer: Peer, name: str, before: Json | None = None, /, **answers: Json) -> Json:
    """The answer to a call of the tool `name`, or to the round that follows `before` with these answers."""
    return await peer.answer(await begun(peer, name, before, **answers))


async def begun(peer: Peer, name: str, before: Json | None = None, /, **answers: Json) -> Any:
    """The same, without waiting: its id."""
    again = {} if before is None else {"requestState": before["result"]["requestState"], "inputResponses": answers}
    return await peer.begin("tools/call", {"name": name, "arguments": {}, **again}, progressToken="t")


def asked(answer: Json) -> dict[str, str]:
    """The method of each question that a round ended with, by key."""
    return {key: one["method"] for key, one in answer["result"]["inputRequests"].items()}


def text(answer: Json) -> str:
    """What a tool said."""
    said: str = answer["result"]["content"][0]["text"]
    return said


def ignore(_notice: Any) -> None:
    """Takes what belongs to no call."""

"""A client with a session of 2025-11-25: it answers what it is asked, and checks that nothing reaches it twice."""

import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from itertools import count
from typing import Any

import aiohttp
import anyio

from tests.checks.replicas.failures import Failed, Lost, MayHaveRun, NotRun, PeerError
from tests.checks.replicas.link import Event, Link, failure_of, read_events
from tests.wire import STATELESS, with_envelope

__all__ = ["Call", "SessionClient", "connected", "stateless", "text_of"]

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "counting client", "version": "1"},
}
AGAIN = 0.2
"""Seconds until a client tries again that was not told when."""
ATTEMPTS = 150

Json = dict[str, Any]


def text_of(result: Json) -> str:
    """The text of a tool's result that is no error. Raises AssertionError."""
    assert not result.get("isError"), result
    text: str = result["content"][0]["text"]
    return text


class Call:
    """One request: what was told on its stream, and how its client follows that."""

    def __init__(self, id: int) -> None:
        self.id = id
        self.logs: list[Any] = []
        """What was logged, in order."""
        self.last: str | None = None
        """The last event seen."""
        self.resumes = 0
        self.answer: Json | None = None
        self.seen: set[str] = set()


class SessionClient:
    """A client. `connected` gives one that listens."""

    def __init__(self, http: aiohttp.ClientSession, base_url: str) -> None:
        self.link = Link(http, base_url)
        self.answers: Callable[[Json], Awaitable[Json]] = self._accept
        self.notices: Counter[str] = Counter()
        """How often it was told of each resource."""
        self.questions: set[Any] = set()
        """The ids of all that it was asked."""
        self.figures: Counter[str] = Counter()
        self.own = Call(0)
        """The session's own stream."""
        self.takeovers: list[float] = []
        """Seconds from the end of a stream to the error that another replica answered it with."""
        self.is_listening = False
        self._ids = count(1)

    # Requests

    async def open(self) -> None:
        """Shakes hands. Raises Failed."""
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": "initialize", "params": HELLO}
        async with self.link.asked("POST", body=message) as response:
            if response.status != 200:
                raise failure_of(response.status, await response.text(), response.headers)
            _result(await response.json())
            session = response.headers["Mcp-Session-Id"]
        self.link.session = session
        await self.deliver({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def request(self, method: str, params: Json | None = None, call: Call | None = None) -> Json:
        """The result of a request; what is told meanwhile is in `call`. A stream that breaks off is taken up again,
        wherever the link leads. Raises Failed."""
        call = call or self.new_call()
        message = {"jsonrpc": "2.0", "id": call.id, "method": method, "params": params or {}}
        self.figures["requests"] += 1
        try:
            async with self.link.asked("POST", body=message) as response:
                if response.status != 200:
                    raise failure_of(response.status, await response.text(), response.headers)
                if response.content_type == "application/json":
                    return _result(await response.json())
                async for event in read_events(response):
                    await self.take(call, event)
        except MayHaveRun:
            if call.last is None:
                raise
        broke = time.monotonic()
        try:
            return await self.follow(call)
        except PeerError:
            self.takeovers.append(time.monotonic() - broke)
            raise

    def new_call(self) -> Call:
        """A call that is yet to be made."""
        return Call(next(self._ids))

    async def tool(self, tool: str, /, call: Call | None = None, **arguments: Any) -> str:
        """The text that a tool gives. Raises Failed."""
        return text_of(await self.request("tools/call", {"name": tool, "arguments": arguments}, call))

    async def follow(self, call: Call) -> Json:
        """The result of a call whose stream has ended before its answer came. Raises Failed."""
        for _ in range(ATTEMPTS):
            if call.answer is not None:
                return _result(call.answer)
            if call.last is None:
                raise MayHaveRun("the stream ended before its first event")
            self.figures["resumes"] += 1
            call.resumes += 1
            try:
                async with aclosing(self.link.resumed(call.last)) as events:
                    async for event in events:
                        await self.take(call, event)
            except (NotRun, MayHaveRun):
                await anyio.sleep(AGAIN)
        raise AssertionError(f"call {call.id} has no answer after {ATTEMPTS} attempts; its last event is {call.last}")

    async def take(self, call: Call, event: Event) -> None:
        """Takes in one event of a stream. Raises AssertionError where it comes twice."""
        if event.id is not None:
            call.last = event.id
        if not event.data:
            return
        assert event.id not in call.seen, f"event {event.id} came twice"
        call.seen.add(event.id or "")
        self.figures["events"] += 1
        await self._hear(call, json.loads(event.data))

    async def _hear(self, call: Call, message: Json) -> None:
        match message:
            case {"id": id_, "method": "elicitation/create", "params": params}:
                assert id_ not in self.questions, f"question {id_} was asked twice"
                self.questions.add(id_)
                self.figures["questions"] += 1
                await self.deliver({"jsonrpc": "2.0", "id": id_, "result": await self.answers(params)})
            case {"method": "notifications/message", "params": params}:
                call.logs.append(params["data"])
            case {"method": "notifications/resources/updated", "params": params}:
                self.notices[params["uri"]] += 1
                self.figures["notices"] += 1
            case {"method": _}:
                self.figures["other messages"] += 1
            case _:
                assert message["id"] == call.id, f"{message} on the stream of call {call.id}"
                assert call.answer is None, f"call {call.id} was answered twice: {call.answer} {message}"
                call.answer = message

    async def deliver(self, message: Json) -> None:
        """Sends what has no answer until somebody has taken it. Raises Lost."""
        for _ in range(ATTEMPTS):
            try:
                return await self.link.send(message)
            except (NotRun, MayHaveRun):
                await anyio.sleep(AGAIN)
        raise AssertionError(f"nobody took {message}")

    async def _accept(self, params: Json) -> Json:
        return {"action": "accept", "content": {"word": params["message"]}}

    async def close(self) -> None:
        """Ends the session. Raises Failed."""
        async with self.link.asked("DELETE") as response:
            if response.status != 200:
                raise failure_of(response.status, await response.text(), response.headers)

    # What no request asked for

    async def listen(self) -> None:
        """Listens to the session's own stream until it is cancelled. Raises Lost, TooOld, or AssertionError."""
        while True:
            try:
                async with aclosing(self._own_events()) as events:
                    async for event in events:
                        await self.take(self.own, event)
            except (NotRun, MayHaveRun):
                self.figures["listening failed"] += 1
            except Failed as failed:
                if isinstance(failed, Lost) or "409" not in str(failed):
                    raise
                self.figures["409 to listen"] += 1  # the connection before this one is not known to be gone yet
            self.is_listening = False
            self.figures["listening anew"] += 1
            await anyio.sleep(AGAIN)

    async def _own_events(self) -> AsyncGenerator[Event]:
        if self.own.last is not None:
            self.is_listening = True
            async with aclosing(self.link.resumed(self.own.last)) as events:
                async for event in events:
                    yield event
            return
        async with self.link.asked("GET", headers={"Accept": "text/event-stream"}) as response:
            if response.status != 200:
                raise failure_of(response.status, await response.text(), response.headers)
            self.is_listening = True
            async for event in read_events(response):
                yield event


def _result(answer: Mapping[str, Any]) -> Json:
    if "error" in answer:
        raise PeerError(answer["error"])
    result: Json = answer["result"]
    return result


@asynccontextmanager
async def connected(http: aiohttp.ClientSession, base_url: str) -> AsyncIterator[SessionClient]:
    """A client whose session is open, and that listens as long as the block."""
    client = SessionClient(http, base_url)
    await client.open()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.listen)
        try:
            yield client
        finally:
            tasks.cancel_scope.cancel()


async def stateless(http: aiohttp.ClientSession, url: str, text: str) -> str:
    """What the tool `echo` gives to a request of 2026-07-28."""
    params = with_envelope({"name": "echo", "arguments": {"text": text}})
    headers = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": "echo"}
    headers |= {"Accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with http.post(f"{url}/mcp", json=body, headers=headers) as response:
        assert response.status == 200, await response.text()
        found: str = (await response.json())["result"]["content"][0]["text"]
        return found

"""Clients that do random things, each by one way, and see whether the answers are theirs."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

import anyio
from anyio.abc import TaskGroup

from shared.protocol.types.tasks import TASKS
from tests.checks.mixture.ways import Posts, Way, http_sse, memory, session, visiting, websocket
from tests.checks.mixture.world import PATIENCE, TOKENS, World
from tests.wire import CLIENT_INFO, NEWEST_HANDSHAKE, STATELESS, with_envelope

Json = dict[str, Any]
WAYS = ("memory", "websocket", "http_sse", "session", "stateless", "000", "002")
POSTS = ("stateless", "000", "002")
"""The ways on which each message stands for itself."""
BATCHING = "2025-03-26"
VERSIONS = (BATCHING, BATCHING, "2025-06-18", NEWEST_HANDSHAKE)
LIMITED = ("too many", "use too much memory", "take too much memory")
"""What an error says that any request may have."""
_LATE = "the operator's limit for one call"
"""What the answer to a call says that took too long."""
_NONCES = count()
_AGAIN_SECONDS = 0.5
"""Between two times that a request is cancelled whose answer may never come."""

Fits = Callable[[Json], bool]
"""Whether an answer is one to the request."""


@dataclass
class Sent:
    """A request."""

    nonce: str
    method: str
    fits: Fits
    answers: int = 0
    is_limited: bool = False
    """Whether it was refused as one too many."""
    is_given_up: bool = False
    is_closed: bool = False
    """Whether it was given up so long ago that no answer may come any more."""


def says(nonce: str) -> Fits:
    """The answer says the nonce of its own request, and no other one's."""
    return lambda answer: nonce in json.dumps(answer)


def fails(code: int) -> Fits:
    """The answer is an error of that code."""
    return lambda answer: answer.get("error", {}).get("code") == code


def succeeds(answer: Json) -> bool:
    """The answer is a result."""
    return "result" in answer


class Player:
    """One client."""

    def __init__(self, world: World, chance: random.Random, way: str) -> None:
        self.world = world
        self.way = way
        self.version = STATELESS if way in POSTS or chance.random() < 0.2 else chance.choice(VERSIONS)
        if way in ("http_sse", "session") and self.version == STATELESS:
            self.version = NEWEST_HANDSHAKE
        self.sent: dict[Any, Sent] = {}
        self.tasks_made: list[str] = []
        self._batches: list[set[int]] = []
        """The ids of those that have no answer yet."""
        self._chance = chance
        self._ids = count(1)
        self._moved = anyio.Event()
        self._group: TaskGroup
        self._connection: Way

    async def play(self, steps: int) -> None:
        """Does so many things, and leaves."""
        async with AsyncExitStack() as stack, anyio.create_task_group() as group:
            self._group, token = group, self._chance.choice(TOKENS)
            site = await stack.enter_async_context(visiting(self.world.running, self.world.port, token))
            match self.way:
                case "memory":
                    opened: Any = memory(self.world.running, self._take, group)
                case "websocket":
                    opened = websocket(site, self._take, group)
                case "http_sse":
                    opened = http_sse(site, self._take, group)
                case "session":
                    headers = await site.initialize(self.version, self._capabilities())
                    opened = session(site, self._take, group, headers)
                case _:
                    opened = None
            if opened is None:
                headers = None if self.way == "stateless" else {}
                self._connection = Posts(site, self._take, group, headers, stands_alone=True)
                await self._steps(steps)
            else:
                async with opened as self._connection:
                    if self.version != STATELESS and self.way != "session":
                        await self._shake_hands()
                    await self._steps(steps)
            group.cancel_scope.cancel()

    # What it does

    async def _shake_hands(self) -> None:
        params = {"protocolVersion": self.version, "capabilities": self._capabilities(), "clientInfo": CLIENT_INFO}
        # First: over HTTP+SSE the answer may be here before `send` ends.
        self.sent["init"] = Sent("", "initialize", succeeds)
        await self._connection.send({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params})
        await self._answered(["init"])
        await self._connection.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def _steps(self, steps: int) -> None:
        for _ in range(steps):
            if self.version == BATCHING and self._chance.random() < 0.3:
                messages = [self._request(*self._some()) for _ in range(self._chance.randint(1, 6))]
                self._batches.append({message["id"] for message in messages})
                await self._connection.send(messages)
            else:
                await self._connection.send(self._request(*self._some()))
            if self._chance.random() < 0.25:
                await self._give_up_one()
            if self._chance.random() < 0.2:
                self.world.change(f"memo://{self._chance.choice('ab')}")
            if self._chance.random() < 0.3:
                await anyio.sleep(self._chance.random() / 200)
        if self._chance.random() < 0.7:
            await self._finish()

    async def _finish(self) -> None:
        """Waits for what comes by itself, and gives up what does not."""
        for id_, sent in list(self.sent.items()):
            if not sent.answers and sent.nonce.startswith("wait") and not sent.is_given_up:
                await self._give_up(id_)
        await self._answered([id_ for id_, sent in self.sent.items() if not sent.is_given_up])
        given_up = [sent for sent in self.sent.values() if sent.is_given_up]
        if self.way in ("memory", "websocket") and given_up:
            last = self._request("no/such", {}, fails(-32601))
            await self._connection.send(last)
            await self._answered([last["id"]])
            for sent in given_up:
                sent.is_closed = True
            await self._connection.send(self._request("no/such", {}, fails(-32601)))
            await self._answered(list(self.sent)[-1:])

    async def _give_up_one(self) -> None:
        open_ = [
            id_ for id_, sent in self.sent.items() if not sent.answers and not sent.is_given_up and id_ != "init"
        ]
        if open_:
            await self._give_up(self._chance.choice(open_))

    async def _give_up_again(self) -> None:
        """Cancels once more what may have come after it was cancelled, as POSTs overtake each other."""
        for id_, sent in list(self.sent.items()):
            if sent.is_given_up and not sent.answers:
                await self._connection.give_up(id_)

    async def _give_up(self, id: Any) -> None:
        if self.way in POSTS:
            await anyio.sleep(0)  # so that the POST has begun
        self.sent[id].is_given_up = True
        await self._connection.give_up(id)

    def _some(self) -> tuple[str, Json, Fits]:
        """Some request: its method and params, and what its answer must be."""
        if self.way in ("000", "002"):
            return self._some_of_dialect(f"n{next(_NONCES)}n")
        if self.tasks_made and self._chance.random() < 0.3:
            task = self._chance.choice(self.tasks_made)
            return self._chance.choice(("tasks/get", "tasks/cancel")), {"taskId": task}, succeeds
        nonce = f"n{next(_NONCES)}n"
        seconds = round(self._chance.random() / 50, 4)
        text = "x" * self._chance.choice([0, 10, 1_000, 30_000, 300_000])
        tool, arguments = self._chance.choice(
            [
                ("echo", {"text": text}),
                ("pause", {"seconds": seconds}),
                ("fail", {}),
                ("work", {"seconds": seconds, "text": text}),
                ("wait", {}),
                ("ask", {}),
            ]
        )
        nonce = f"wait{nonce}" if tool in ("wait", "ask") else nonce
        called = {"name": tool, "arguments": {"nonce": nonce, **arguments}}
        if tool == "work":
            fits: Fits = succeeds
        elif tool == "ask":
            fits = lambda answer: True  # noqa: E731 - who can't be asked gets an error, and others a question
        else:
            fits = says(nonce)
        others: list[tuple[str, Json, Fits]] = [
            ("no/such", {"nonce": nonce}, fails(-32601)),
            ("tools/list", {"cursor": 7, "nonce": nonce}, fails(-32602)),
            (
                "tools/list",
                {} if self.world.has_gateway else {"nonce": nonce},
                succeeds,
            ),  # the inner one has no nonce
            ("resources/read", {"uri": f"memo://{nonce}"}, says(nonce)),
        ]
        if self.version != STATELESS:
            others += [
                ("ping", {"nonce": nonce}, succeeds),
                ("resources/subscribe", {"uri": f"memo://{nonce}"}, succeeds),
                ("logging/setLevel", {"level": "info", "nonce": nonce}, succeeds),
            ]
        else:
            wanted = {"toolsListChanged": True, "resourceSubscriptions": ["memo://a"]}
            others.append(("subscriptions/listen", {"notifications": wanted, "nonce": f"wait{nonce}"}, succeeds))
        if self._chance.random() < 0.5:
            return "tools/call", called, fits
        return self._chance.choice(others)

    def _some_of_dialect(self, nonce: str) -> tuple[str, Json, Fits]:
        called, uri = {"nonce": nonce, "text": "x" * 100}, f"memo://{nonce}"
        if self.way == "000":
            several: list[tuple[str, Json, Fits]] = [
                ("mcp/tool/execute", {"toolId": "mixed/echo", "inputs": called}, says(nonce)),
                ("mcp/resource/read", {"resourceId": uri}, says(nonce)),
                ("mcp/noSuch", {"nonce": nonce}, fails(-32601)),
                ("mcp/listTools", {}, succeeds),
            ]
        else:
            several = [
                ("call_tool", {"name": "echo", "arguments": called}, says(nonce)),
                ("read_resource", {"uri": uri}, says(nonce)),
                ("initialize", {}, succeeds),
            ]
        return self._chance.choice(several)

    def _request(self, method: str, params: Json, fits: Fits) -> Json:
        id_ = next(self._ids)
        arguments = params.get("arguments") or params.get("inputs") or params
        uri = arguments.get("uri") or arguments.get("resourceId") or ""
        self.sent[id_] = Sent(arguments.get("nonce") or uri.rpartition("//")[2], method, fits)
        if self.way not in ("000", "002") and self.version == STATELESS:
            params = with_envelope(params, capabilities=self._capabilities())
        return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}

    def _capabilities(self) -> Json:
        # By the parity of a name, and not by chance: it is asked for often.
        has_tasks = self.version == STATELESS and self.way != "memory"
        return {"elicitation": {"form": {}}, **({"extensions": {TASKS: {}}} if has_tasks else {})}

    # What it gets

    def _take(self, message: Any) -> None:
        if isinstance(message, list):
            self._take_batch({one.get("id") for one in message})
        for one in message if isinstance(message, list) else [message]:
            if "method" not in one:
                self._take_answer(one)
            elif one["method"] == "elicitation/create" and self._chance.random() < 0.8:
                action = self._chance.choice([{"action": "decline"}, {"action": "accept", "content": {"word": "x"}}])
                answer = {"jsonrpc": "2.0", "id": one["id"], "result": action}
                self._group.start_soon(self._connection.send, answer)
        self._moved.set()

    def _take_batch(self, ids: set[Any]) -> None:
        """A batch is answered as a whole, but for what was given up."""
        batch = next((one for one in self._batches if ids <= one), None)
        if batch is None:
            self._complain(f"an array of answers to no batch: {ids}")
        else:
            self._batches.remove(batch)
            left = [id_ for id_ in batch - ids if not self.sent[id_].is_given_up]
            if left:
                self._complain(f"a batch is answered without {left}")

    def _take_answer(self, answer: Json) -> None:
        sent = self.sent.get(answer.get("id"))
        if sent is None:
            if answer.get("error", {}).get("code") != -32600:
                self._complain(f"an answer to nothing: {json.dumps(answer)[:300]}")
            return
        sent.answers += 1
        if (result := answer.get("result", {})) and "taskId" in result and sent.method == "tools/call":
            self.tasks_made.append(result["taskId"])
        if sent.answers > 1:
            self._complain(f"{sent.method} {sent.nonce} has {sent.answers} answers")
        if sent.is_closed:
            self._complain(f"{sent.method} {sent.nonce} is answered long after it was given up")
        said = answer.get("error", {}).get("message", "")
        sent.is_limited = any(text in said for text in LIMITED)
        if not sent.fits(answer) and not sent.is_limited and _LATE not in json.dumps(answer):
            self._complain(f"{sent.method} {sent.nonce} is answered by {json.dumps(answer)[:300]}")

    async def _answered(self, ids: list[Any]) -> None:
        """Waits until these have an answer."""
        with anyio.move_on_after(PATIENCE):
            while any(not self.sent[id_].answers for id_ in ids):
                self._moved = anyio.Event()
                with anyio.move_on_after(_AGAIN_SECONDS):
                    await self._moved.wait()
                if self.way == "session":
                    await self._give_up_again()
        for id_ in ids:
            if not self.sent[id_].answers:
                self._complain(f"{self.sent[id_].method} {self.sent[id_].nonce} has no answer")

    def _complain(self, text: str) -> None:
        self.world.trouble.append(f"{self.way}, {self.version}: {text}")

    @property
    def certain(self) -> Iterator[str]:
        """The nonces of requests that have a line each: of what is too much, one line says how often."""
        return (sent.nonce for sent in self.sent.values() if sent.nonce and sent.answers and not sent.is_limited)

"""Plays transcripts: files that show, message by message, what a client sends and what comes back.

    # What the transcript shows.
    # 2025-11-25, Basic, Lifecycle.                   where the specification says so
    app: basic                                        one of tests/transcript_apps.py and document_apps.py
    version: 2025-06-18 2025-11-25                    played once for each; see below
    capabilities: {"roots": {}}                       the client's, in the handshake and in "$envelope"
    dialect: 002                                      no schema of the specification covers its form

    --> {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    <-- {"jsonrpc": "2.0", "id": 1, "result": {}}

Under a version with a handshake, an unlisted handshake goes first. Without `version:` every message is listed.
A message may continue in lines that start with a space. Text that is not JSON is sent unchanged, and `b"\xff"` as
those bytes. `--> end` ends the client's side; `<-- end` is the end of the server's. `<-- nothing` means that
no message came and no work in progress could still send one, and so does each turn from `<--` to `-->`.

With `client: 2025-06-18` in place of `app:`, our own client plays against the text in that mode: the text after the
arrows to the right is what a server sends to it.

The text `"$envelope"` under `_meta` stands for the fields of every request of 2026-07-28; so does the key
`"$envelope": true` in a `_meta` that holds more. Any other text `"$name"` is bound where the server sends it first,
and means the same text from there on: `$state1`, `$cursor1` and `$task1` are the first of their kind.

`pytest --update-transcripts` writes the current answers of the server. Read the difference before you commit it.

Every message of the server is also checked against the official schema of its version.
"""

import ast
import json
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.concurrency import background
from shared.protocol.types.client import CreateMessageResult, ElicitResult
from shared.protocol.types.content import TextContent
from shared.protocol.types.elicitation import ElicitForm
from shared.protocol.types.sampling import CreateMessageParams
from shared.testing import connected
from shared.transports.memory import MemoryTransport, memory_pair
from tests import document_apps, schemas, transcript_apps
from tests.quiet import quiet
from tests.transcript_files import Transcript, layout
from tests.wire import CLIENT_INFO, NEWEST_HANDSHAKE, STATELESS, with_envelope

PATIENCE = 20.0
NOTHING, END = "nothing", "end"
OPAQUE = {
    "requestState": "state",
    "nextCursor": "cursor",
    "elicitationId": "visit",
    **dict.fromkeys(("taskId", "taskIds"), "task"),
}
PLACEHOLDER = re.compile(r"\$[a-z]+[0-9]*")
APPS = vars(transcript_apps) | vars(document_apps)
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


async def play(
    transcript: Transcript, version: str | None, *, update: bool = False, dialects: bool = True
) -> list[bytes]:
    """Plays one transcript with a server that may be spoken to in dialects, or may not; what it said, with
    placeholders in the place of opaque texts. Raises AssertionError where it says something else."""
    options = transcript.options
    with anyio.fail_after(PATIENCE):
        async with peer(options, dialects=dialects) as end:
            player = Player(end, version, json.loads(options.get("capabilities", "{}")), "dialect" not in options)
            if version not in (None, STATELESS):
                await player.shake_hands()
            if update:
                transcript.steps = [step async for step in player.answers(transcript.steps)]
                transcript.write()
            else:
                await player.compare(transcript.steps)
            return [player.without_opaque(data) for data in player.received]


def peer(options: dict[str, str], *, dialects: bool) -> AbstractAsyncContextManager[MemoryTransport]:
    """Opens the subject of a transcript with these options; yields the other end."""
    return asked(options["client"]) if "client" in options else connected(APPS[options["app"]](), dialects=dialects)


@asynccontextmanager
async def asked(mode: str) -> AsyncIterator[MemoryTransport]:
    """Yields the server's end of a connection to a client that accepts forms and whose model answers "Blue."."""
    ours, theirs = memory_pair()
    options = ClientOptions(name="player", version="1", mode=mode, elicit=accept, sample=say_blue, cache_bytes=0)

    async def run() -> None:
        async with Client(theirs, options):
            await anyio.sleep_forever()

    async with background() as tasks:
        tasks.start_soon(run)
        yield ours
    ours.close()


async def accept(_form: ElicitForm) -> ElicitResult:
    return ElicitResult(action="accept", content={})


async def say_blue(_conversation: CreateMessageParams) -> CreateMessageResult:
    return CreateMessageResult.of("player", TextContent(text="Blue."), stop_reason=None)


@dataclass
class Player:
    """The peer that plays one transcript."""

    end: MemoryTransport
    version: str | None
    capabilities: dict[str, Any]
    has_schema: bool = True
    received: list[bytes] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)
    pending: dict[Any, tuple[str, str]] = field(default_factory=dict)  # id -> method, version

    async def shake_hands(self) -> None:
        params = {"protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": CLIENT_INFO}
        await self.send(json.dumps({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params}))
        assert (await self.receive())["result"]["protocolVersion"] == self.version
        await self.send('{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    async def compare(self, steps: list[tuple[str, str]]) -> None:
        for (before, _), (arrow, text) in zip([("", ""), *steps], steps, strict=False):
            if arrow == "-->":
                if before == "<--":
                    await self.expect_nothing()
                await self.send(text)
            elif text == NOTHING:
                await self.expect_nothing()
            elif text == END:
                await self.expect_end()
            else:
                expected = json.loads(text)
                actual = await self.receive()
                self.bind(expected, actual)
                assert actual == self.filled(expected)
        await self.expect_nothing()

    async def answers(self, steps: list[tuple[str, str]]) -> Any:
        """Returns the steps with the current answers of the server."""
        async for message in self.said():
            yield "<--", message
        for at, (arrow, text) in enumerate(steps):
            if arrow == "-->":
                await self.send(text)
                yield arrow, text
                following = steps[at + 1][0] if at + 1 < len(steps) else "<--"
                if following == "<--":
                    said = [one async for one in self.said()]
                    for message in said or [NOTHING]:
                        yield "<--", message

    async def said(self) -> Any:
        await quiet()
        while (data := self.pop()) not in (None, END):
            yield layout(self.named(self.check(json.loads(data))))
        if data is END:
            yield END

    def pop(self) -> bytes | str | None:
        """Returns the next available message, END at the end, None if there is none."""
        try:
            # `receive` of its public end would wait.
            return self.end._inbox.receive_nowait()
        except anyio.WouldBlock:
            return None
        except anyio.EndOfStream:
            return END

    async def expect_nothing(self) -> None:
        await quiet()
        waiting = self.pop()
        assert waiting in (None, END), f"the server also says {waiting!r}"

    async def expect_end(self) -> None:
        try:
            raise AssertionError(f"instead of the end comes {await self.receive()}")
        except anyio.EndOfStream:
            return

    # Messages

    async def send(self, text: str) -> None:
        if text == END:
            self.end.close_sending()
        elif text.startswith(("b'", 'b"')):
            await self.end.send_bytes(ast.literal_eval(text))
        else:
            await self.end.send_bytes(self.remembered(text).encode())

    def remembered(self, text: str) -> str:
        """Returns `text` with its placeholders filled, and stores its requests to check their answers."""
        try:
            message = json.loads(text)
        except ValueError:
            return text
        if not PLACEHOLDER.search(text) and "\n" not in text:
            self.remember(message)
            return text
        message = self.filled(message)
        self.remember(message)
        return json.dumps(message)

    def remember(self, message: Any) -> None:
        for part in message if isinstance(message, list) else [message]:
            if isinstance(part, dict) and isinstance(part.get("method"), str) and "id" in part:
                self.pending[_key(part["id"])] = (part["method"], self.version_of(part.get("params")))

    def version_of(self, params: Any) -> str:
        meta = params.get("_meta") if isinstance(params, dict) else None
        stateless = isinstance(meta, dict) and VERSION_KEY in meta
        return STATELESS if stateless else self.version or NEWEST_HANDSHAKE

    async def receive(self) -> Any:
        data = await self.end.receive_bytes()
        self.received.append(data)
        return self.check(json.loads(data))

    def check(self, message: Any) -> Any:
        """Returns `message` after a check against the official schema of its version."""
        if not self.has_schema:
            return message
        if isinstance(message, list):
            methods = {part.get("id"): self.pending.pop(_key(part.get("id")), ("", ""))[0] for part in message}
            _fits(message, ["2025-03-26"], {id_: method or None for id_, method in methods.items()})
            return message
        method, version = self.pending.pop(_key(message.get("id")), (None, None))
        if "method" in message:
            used = {self.version or STATELESS, *(version for _, version in self.pending.values())}
            _fits(message, sorted(used), None)
        elif version is not None:
            if method == "initialize" and "result" in message:
                version = self.version = message["result"]["protocolVersion"]
            _fits(message, [version], method)
        return message

    # Placeholders

    def filled(self, value: Any) -> Any:
        match value:
            case "$envelope":
                return with_envelope(capabilities=self.capabilities)["_meta"]
            case str() if PLACEHOLDER.fullmatch(value):
                return self.bound.get(value, value)
            case {"_meta": {"$envelope": True, **more}}:
                return self.filled({**value, "_meta": {**self.filled("$envelope"), **more}})
            case dict():
                return {key: self.filled(item) for key, item in value.items()}
            case list():
                return [self.filled(item) for item in value]
        return value

    def without_opaque(self, data: bytes) -> bytes:
        """Returns `data` with a placeholder for each text that is bound to one."""
        for name, text in self.bound.items():
            data = data.replace(text.encode(), name.encode())
        return data

    def bind(self, expected: Any, actual: Any) -> None:
        """Binds each placeholder in `expected` to the text at its place in `actual`."""
        match expected, actual:
            case str(), str() if PLACEHOLDER.fullmatch(expected):
                self.bound.setdefault(expected, actual)
            case dict(), dict():
                for key in expected.keys() & actual.keys():
                    self.bind(expected[key], actual[key])
            case list(), list():
                for one, other in zip(expected, actual, strict=False):
                    self.bind(one, other)

    def named(self, value: Any, key: str = "") -> Any:
        """Returns `value` with opaque text replaced by placeholders, which are bound."""
        match value:
            case str() if key in OPAQUE:
                if value not in self.bound.values():
                    count = sum(name.startswith(f"${OPAQUE[key]}") for name in self.bound)
                    self.bound[f"${OPAQUE[key]}{count + 1}"] = value
                return next(name for name, text in self.bound.items() if text == value)
            case dict():
                return {name: self.named(item, name) for name, item in value.items()}
            case list():
                return [self.named(item, key) for item in value]
        return value


def _key(id: Any) -> tuple[type, str]:
    return type(id), repr(id)


def _fits(message: Any, versions: list[str], method: Any) -> None:
    problems = []
    for version in versions if schemas.wanted() else ():
        try:
            schemas.check(message, version, method=method)
        except AssertionError as problem:
            problems.append(str(problem))
    assert len(problems) < max(len(versions), 1), "\n".join(problems)

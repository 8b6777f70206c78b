"""The listen streams at a server without sessions that tell of resources: few of them, however many resources.

    add ──▶ gathered for a moment ──▶ one new stream, which takes over what small ones have ──▶ these are ended

A stream tells of what it was opened for. One for each resource would be a connection for each over HTTP, and one for
all would name thousands again for each new one. So a new stream takes over those that have no more than it has: of n
resources there are some log n streams, and each resource was named some log n times.
"""

import logging
from collections.abc import Callable, Collection, Iterable

import anyio

from shared.client.client import Client
from shared.client.connection.subscription import Change
from shared.concurrency import Crew
from shared.errors import McpError

_log = logging.getLogger("shared.gateway.bridge.listening")

GATHER_SECONDS = 0.01
"""How long a new stream waits for more resources."""
MAX_URIS = 1_000
"""Resources of one stream."""
PAUSE_SECONDS = 30.0
"""Between attempts to open a stream again that the server has ended for good."""


class _Batch:
    """The resources that are asked for together, and what came of that."""

    def __init__(self) -> None:
        self.uris: dict[str, None] = {}
        self.over = anyio.Event()
        self.refused: frozenset[str] = frozenset()
        self.error: Exception | None = ConnectionError("the bridge is closed")


class _Stream:
    """One listen stream, and the resources in it that somebody still wants. `tell` hears of each that changes, and of
    each that may have."""

    def __init__(self, uris: Iterable[str], tell: Callable[[Change], None]) -> None:
        self.uris = dict.fromkeys(uris)
        self.opened = anyio.Event()
        """Set when it stands for the first time, and when it never will."""
        self.refused: frozenset[str] = frozenset()
        self.error: Exception | None = ConnectionError("the bridge is closed")
        """Why it has never stood."""
        self._tell = tell
        self._scope = anyio.CancelScope()

    def end(self) -> None:
        """Nobody wants anything of it any more."""
        self._scope.cancel()

    async def run(self, client: Client) -> None:
        """Tells of changes until `end`, or the end of the connection."""
        try:
            with self._scope:
                await self._once(client)
                while self.error is None and client.connected:
                    await anyio.sleep(PAUSE_SECONDS)
                    await self._once(client)
        finally:
            self.opened.set()

    async def _once(self, client: Client) -> None:
        try:
            async with client.changes(tuple(self.uris), lists=False) as changes:
                refused = frozenset(changes.refused)
                if self.opened.is_set():
                    self._missed()
                else:
                    self.error, self.refused = None, refused
                    self.opened.set()
                async for change in changes:
                    self._heard(change)
        except (McpError, OSError) as error:
            if not self.opened.is_set():
                self.error = error
            _log.info("a listen stream for %s resources has ended: %s", len(self.uris), error)

    def _heard(self, change: Change) -> None:
        if change.kind == "missed":
            self._missed()
        else:
            self._tell(change)

    def _missed(self) -> None:
        for uri in tuple(self.uris):
            self._tell(Change("resource", uri))


class Listening:
    """The streams of one client. `tell` hears of each resource that changes, and of each that may have."""

    def __init__(self, client: Client, tasks: Crew, tell: Callable[[Change], None]) -> None:
        self.client = client
        self._tasks = tasks
        self._tell = tell
        self._batch: _Batch | None = None
        self._opening = anyio.Lock()
        self._streams: dict[str, _Stream] = {}
        """By the resource that it tells of."""

    @property
    def streams(self) -> int:
        """How many are open."""
        return len(self._open())

    async def add(self, uri: str) -> bool:
        """Has the server tell of `uri`; False where it does not. Raises PeerError, ConnectionError and TimeoutError
        where it opens no stream."""
        if self._batch is None:
            self._batch = _Batch()
            self._tasks.start(self._open_soon(self._batch))
        batch = self._batch
        batch.uris[uri] = None
        await batch.over.wait()
        if batch.error is not None:
            raise batch.error
        return uri not in batch.refused

    async def remove(self, uri: str) -> None:
        """Nobody wants to know of `uri` any more, which was added."""
        self._drop(uri)

    def _drop(self, uri: str) -> None:
        stream = self._streams.pop(uri, None)
        if stream is not None:
            del stream.uris[uri]
            if not stream.uris:
                stream.end()

    def _open(self) -> dict[_Stream, None]:
        return dict.fromkeys(self._streams.values())

    async def _open_soon(self, batch: _Batch) -> None:
        # One after the other: what comes while one is opened shares the next.
        try:
            async with self._opening:
                await anyio.sleep(GATHER_SECONDS)
                self._batch = None
                uris = list(batch.uris)
                for start in range(0, len(uris), MAX_URIS):
                    batch.refused |= await self._open_one(uris[start : start + MAX_URIS])
            batch.error = None
        except (McpError, OSError) as error:
            batch.error = error
            for uri in batch.uris:
                self._drop(uri)
        finally:
            batch.over.set()

    async def _open_one(self, uris: Collection[str]) -> frozenset[str]:
        """Opens a stream for `uris`, which takes over those of smaller ones; which of `uris` the server refuses."""
        size = len(uris)
        before = []
        for stream in sorted(self._open(), key=lambda stream: len(stream.uris)):
            if len(stream.uris) > size or size + len(stream.uris) > MAX_URIS:
                break
            size += len(stream.uris)
            before.append(stream)
        asked = frozenset(uris)
        new = _Stream([*uris, *(uri for stream in before for uri in stream.uris)], self._tell)
        self._tasks.start(new.run(self.client))
        await new.opened.wait()
        if new.error is not None:
            raise new.error
        given_up = {uri for uri in new.uris if uri not in asked and uri not in self._streams}
        for uri in new.refused | given_up:
            del new.uris[uri]
        for stream in before:
            stream.end()
        for uri in new.refused - asked - given_up:
            # It was told of until now: whoever reads it again learns what is so.
            del self._streams[uri]
            self._tell(Change("resource", uri))
        self._streams.update(dict.fromkeys(new.uris, new))
        if not new.uris:
            new.end()
        return new.refused & asked

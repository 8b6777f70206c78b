"""The listen streams for resources at a stateless server: few streams, even for many resources.

    add ──▶ wait a moment for further resources ──▶ open one stream for them and for the resources of smaller streams
                                                ──▶ end the smaller streams

A stream reports changes of the resources for which it was opened; none can be added later. With one stream for each
resource, HTTP would need a connection for each. With a single stream for all, each new resource would mean to send
thousands of URIs again. So a new stream takes over the resources of all streams that have at most as many as it has.
For n resources there are about log n streams, and each URI is sent about log n times.
"""

import logging
from collections.abc import Callable, Collection, Iterable

import anyio

from shared.client.client import Client
from shared.client.connection.subscription import Change
from shared.concurrency import TaskSet
from shared.errors import McpError

_log = logging.getLogger("shared.gateway.bridge.listening")

GATHER_SECONDS = 0.01
"""Seconds to wait for further resources before a stream is opened."""
MAX_URIS = 1_000
"""Maximum number of resources of one stream."""
PAUSE_SECONDS = 30.0
"""Seconds between attempts to reopen a stream that the server has ended for good."""


class _Batch:
    """Resources that are added together, and the outcome. `error` is None if all streams for them were opened."""

    def __init__(self) -> None:
        self.uris: dict[str, None] = {}
        self.abandoned: set[str] = set()
        """The resources for which no call waits any more."""
        self.done = anyio.Event()
        self.refused: frozenset[str] = frozenset()
        self.error: Exception | None = ConnectionError("the bridge is closed")


class _Stream:
    """One listen stream, and the resources in it that are still needed. `report` is called for each resource that
    changes, or may have changed."""

    def __init__(self, uris: Iterable[str], report: Callable[[Change], None]) -> None:
        self.uris = dict.fromkeys(uris)
        self.opened = anyio.Event()
        """Set when the first attempt to open the stream has succeeded or failed."""
        self.refused: frozenset[str] = frozenset()
        self.error: Exception | None = ConnectionError("the bridge is closed")
        """Why the first attempt to open the stream failed; None if it succeeded."""
        self._report = report
        self._scope = anyio.CancelScope()

    def end(self) -> None:
        """End the stream, which is no longer needed."""
        self._scope.cancel()

    async def run(self, client: Client) -> None:
        """Report changes, and reopen the stream when the server ends it, until `end` or the end of the connection."""
        try:
            with self._scope:
                await self._run_once(client)
                while self.error is None and client.connected:
                    await anyio.sleep(PAUSE_SECONDS)
                    await self._run_once(client)
        finally:
            self.opened.set()

    async def _run_once(self, client: Client) -> None:
        try:
            async with client.changes(tuple(self.uris), lists=False) as changes:
                refused = frozenset(changes.refused)
                if self.opened.is_set():
                    self._report_all()
                else:
                    self.error, self.refused = None, refused
                    self.opened.set()
                async for change in changes:
                    self._on_change(change)
        except (McpError, OSError) as error:
            if not self.opened.is_set():
                self.error = error
            _log.info("a listen stream for %s resources has ended: %s", len(self.uris), error)

    def _on_change(self, change: Change) -> None:
        if change.kind == "missed":
            self._report_all()
        else:
            self._report(change)

    def _report_all(self) -> None:
        for uri in tuple(self.uris):
            self._report(Change("resource", uri))


class ListenStreams:
    """The streams of one client. `report` is called for each resource that changes, or may have changed."""

    def __init__(self, client: Client, tasks: TaskSet, report: Callable[[Change], None]) -> None:
        self.client = client
        self._tasks = tasks
        self._report = report
        self._batch: _Batch | None = None
        self._opening = anyio.Lock()
        self._streams: dict[str, _Stream] = {}
        """The stream of each resource."""

    @property
    def stream_count(self) -> int:
        """The number of open streams."""
        return len(self._open_streams())

    async def add(self, uri: str) -> bool:
        """Request notifications about `uri` from the server; return False if the server refuses. Raises PeerError,
        ConnectionError and TimeoutError if no stream can be opened."""
        if self._batch is None:
            self._batch = _Batch()
            self._tasks.start(self._open_batch(self._batch))
        batch = self._batch
        batch.uris[uri] = None
        batch.abandoned.discard(uri)
        is_done = False
        try:
            await batch.done.wait()
            is_done = True
        finally:
            if not is_done:
                batch.abandoned.add(uri)
                if batch.done.is_set():
                    self._drop(uri)
        if batch.error is not None:
            raise batch.error
        return uri not in batch.refused

    async def remove(self, uri: str) -> None:
        """Remove `uri`, and end its stream if nothing is left in it."""
        self._drop(uri)

    def _drop(self, uri: str) -> None:
        stream = self._streams.pop(uri, None)
        if stream is not None:
            del stream.uris[uri]
            if not stream.uris:
                stream.end()

    def _open_streams(self) -> dict[_Stream, None]:
        return dict.fromkeys(self._streams.values())

    async def _open_batch(self, batch: _Batch) -> None:
        # Streams are opened one at a time, so that resources added while one is being opened share the next.
        try:
            async with self._opening:
                await anyio.sleep(GATHER_SECONDS)
                self._batch = None
                uris = list(batch.uris)
                for start in range(0, len(uris), MAX_URIS):
                    batch.refused |= await self._open_stream(uris[start : start + MAX_URIS])
                for uri in batch.abandoned:
                    self._drop(uri)
            batch.error = None
        except (McpError, OSError) as error:
            batch.error = error
            for uri in batch.uris:
                self._drop(uri)
        finally:
            batch.done.set()

    async def _open_stream(self, uris: Collection[str]) -> frozenset[str]:
        """Open a stream for `uris` that takes over the resources of smaller streams; return those of `uris` that the
        server refuses."""
        size = len(uris)
        replaced = []
        for stream in sorted(self._open_streams(), key=lambda stream: len(stream.uris)):
            if len(stream.uris) > size or size + len(stream.uris) > MAX_URIS:
                break
            size += len(stream.uris)
            replaced.append(stream)
        requested = frozenset(uris)
        new_stream = _Stream([*uris, *(uri for stream in replaced for uri in stream.uris)], self._report)
        self._tasks.start(new_stream.run(self.client))
        await new_stream.opened.wait()
        if new_stream.error is not None:
            raise new_stream.error
        dropped = {uri for uri in new_stream.uris if uri not in requested and uri not in self._streams}
        for uri in new_stream.refused | dropped:
            del new_stream.uris[uri]
        for stream in replaced:
            stream.end()
        for uri in new_stream.refused - requested - dropped:
            # The server no longer reports its changes. Report one, so that clients read its current state.
            del self._streams[uri]
            self._report(Change("resource", uri))
        self._streams.update(dict.fromkeys(new_stream.uris, new_stream))
        if not new_stream.uris:
            new_stream.end()
        return new_stream.refused & requested

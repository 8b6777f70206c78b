"""The changes that a server reports, as an iterator that continues after a lost connection.

    async for change in client.changes(["file:///notes.txt"]):
        ...

A task maintains the subscription, and queues the changes for the reader of the iterator. A slow reader receives each
change once, however often the server has reported it; a reader that is too far behind receives a single `missed`
change instead of all others.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup

from ...concurrency import Signal
from ...errors import McpError, PeerError
from ...protocol.http.retry_after import RETRYABLE
from ...text import plain
from .connection import Connection
from .link import Link
from .retry import backoff
from .subscription import Change, ChangeKind, Subscription, subscribe

__all__ = ["Change", "ChangeKind", "Changes", "PendingChanges"]

MAX_PENDING = 1_000
"""The maximum number of queued changes; beyond it, a single `missed` change replaces them."""
STABLE_SECONDS = 60.0
"""Seconds after which a subscription counts as stable: when it ends later, the first attempt to renew it is made
soon, as after a first failure."""
_MISSED = Change("missed")
_log = logging.getLogger("shared.client.changes")


class PendingChanges:
    """The changes that the reader has not consumed yet, without duplicates."""

    def __init__(self, limit: int = MAX_PENDING) -> None:
        self._limit = limit
        self._changes: dict[Change, None] = {}
        self._woken = Signal()
        self._error: Exception | None = None
        self._is_over = False

    def put(self, change: Change) -> None:
        """Add a change, and wake the reader."""
        if _MISSED not in self._changes:
            if change == _MISSED or (len(self._changes) >= self._limit and change not in self._changes):
                # A `missed` change includes all other changes.
                self._changes.clear()
                change = _MISSED
            self._changes[change] = None
        self._woken.wake()

    def end(self, error: Exception | None = None) -> None:
        """End the queue; `error` is raised once all changes are consumed."""
        if not self._is_over:
            self._is_over, self._error = True, error
            self._woken.wake()

    async def take(self) -> Change | None:
        """Return the oldest change; None at the end. Raises the error of `end`."""
        while not self._changes:
            if self._error is not None:
                raise self._error
            if self._is_over:
                return None
            await self._woken.wait()
        change = next(iter(self._changes))
        del self._changes[change]
        return change


class Changes(AsyncIterator[Change]):
    """An iterator over changes of some resources, and of the lists. The subscription begins when the first change is
    awaited, or with the block of `async with`. It is cancelled by the end of the block, by `aclose`, and when the
    iterator is garbage-collected.

    Iterating raises PeerError if the server refuses the subscription, TimeoutError if it does not answer, and
    ConnectionError if the connection is lost and is not reopened. Iteration ends when the client closes.
    """

    def __init__(self, link: Link, tasks: TaskGroup, uris: Sequence[str], *, lists: bool) -> None:
        self._subscriber = _Subscriber(link, tuple(uris), lists)
        self._link = link
        self._tasks = tasks
        self._is_started = False

    @property
    def refused(self) -> tuple[str, ...]:
        """The URIs whose changes the server does not report, according to its acknowledgement in the stateless era.
        In the handshake era the server refuses a subscription with an error instead."""
        return self._subscriber.refused

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        self._start()
        change = await self._subscriber.pending.take()
        if change is None:
            raise StopAsyncIteration
        return change

    async def __aenter__(self) -> Self:
        """Subscribe. Raises the same errors as iterating."""
        self._start()
        try:
            await self._subscriber.established.wait()
        finally:
            if not self._subscriber.established.is_set():
                self._subscriber.scope.cancel()
        if self._subscriber.refusal is not None:
            raise self._subscriber.refusal
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel the subscription, and wait until that is done."""
        self._subscriber.scope.cancel()
        if self._is_started:
            with anyio.CancelScope(shield=True):
                await self._subscriber.ended.wait()

    def _start(self) -> None:
        if not self._is_started:
            self._is_started = True
            if self._link.is_usable:
                self._tasks.start_soon(self._subscriber.run)
            else:
                self._subscriber.end(ConnectionError("the connection is lost, or the client is closed"))

    def __del__(self) -> None:
        # If a loop is left by `break`, only this ends the subscription. It works because the subscriber has no
        # reference to its iterator.
        if self._is_started:
            with suppress(RuntimeError):  # the event loop is closed
                self._subscriber.scope.cancel()


class _Subscriber:
    """Maintains one subscription, on one connection after another."""

    def __init__(self, link: Link, uris: tuple[str, ...], lists: bool) -> None:
        self.pending = PendingChanges()
        self.scope = anyio.CancelScope()
        self.established = anyio.Event()
        """Set when the first subscription has succeeded or failed, or will never be attempted."""
        self.ended = anyio.Event()
        self.refused: tuple[str, ...] = ()
        self.refusal: McpError | OSError | None = None
        """The error that prevented the first subscription."""
        self._link = link
        self._uris = uris
        self._lists = lists

    async def run(self) -> None:
        """Subscribe, and subscribe again whenever the subscription ends."""
        try:
            with self.scope:
                await self._maintain()
        except (McpError, OSError) as error:
            self.end(error)
        finally:
            self.end()

    def end(self, error: McpError | OSError | None = None) -> None:
        """End the changes, with `error` if there is one."""
        if not self.established.is_set():
            self.refusal = error
        self.pending.end(error)
        self.ended.set()
        self.established.set()

    async def _maintain(self) -> None:
        failures = 0
        while True:
            began = anyio.current_time()
            try:
                connection = await self._link.current(None)
                if connection.gone.is_set():
                    raise ConnectionError("the server ended the connection")
                await self._subscribe_once(connection)
            except (ConnectionError, TimeoutError, PeerError) as error:
                # A first subscription that fails is not repeated. A later one is repeated if the server has
                # disconnected or reports that it is busy.
                is_temporary = not isinstance(error, PeerError) or error.code in RETRYABLE
                if not self.established.is_set() or not self._link.is_usable or not is_temporary:
                    raise
            failures = 1 if anyio.current_time() - began >= STABLE_SECONDS else failures + 1
            await anyio.sleep(backoff(failures))

    async def _subscribe_once(self, connection: Connection) -> None:
        subscription = Subscription(self._uris, self.pending.put, self._lists)
        async with subscribe(connection, subscription) as ended:
            self.refused = subscription.refused_uris()
            if self.established.is_set():
                self.pending.put(_MISSED)
            elif self.refused:
                # Logged, because a caller that does not check `refused` would wait forever without knowing why.
                _log.warning("the server does not report changes to %s", plain(", ".join(self.refused[:10])))
            self.established.set()
            await ended()
        if not self._link.is_usable:
            raise ConnectionError("the server ended the connection")

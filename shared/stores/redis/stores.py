"""Redis as the stores of replicas: each replica joins the other replicas, lives while it can renew its lease, and
starts over when it can't.

Two connections are enough: one for all operations, one on which it is woken for entries in its inbox.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from hashlib import sha256

import anyio
from redis.asyncio import Redis
from redis.exceptions import RedisError

from ...concurrency import background
from ...contracts import ReplayLimits, ReplicaWatcher, TaskLimits
from .blobs import RedisBlobs
from .bus import RedisBus
from .limiter import RedisLimiter
from .link import REPLY_SECONDS, Link, outage_reason
from .log import RedisLog
from .sessions import RedisSessions
from .tasks import RedisTasks

log = logging.getLogger("shared.stores")

RENEWALS = 3
"""The number of renewals during one lease."""
NUMBERS = 2**20
"""The number of numbers of replicas, which are leased in turn."""
RETRY_SECONDS = 0.1
"""Seconds between two attempts to join again."""
LEAVE_SECONDS = 2.0
"""Seconds that a replica that stops waits for its queued operations."""


class Stores:
    """Creates replicas, which share all data under one prefix in one Redis."""

    def __init__(self, connect: Callable[[], Redis], prefix: str, lease_seconds: float, secret: bytes) -> None:
        """`connect` creates a client of Redis, `secret` is the same for all replicas."""
        self._connect = connect
        self._prefix = prefix
        self._lease_seconds = lease_seconds
        self._secret = secret

    def for_server(self, name: str) -> "Stores":
        """Return the stores of the server with that name, separate from all others."""
        # A cursor of one server is invalid for another server.
        secret = sha256(self._secret + b"\0" + name.encode()).digest()
        return Stores(self._connect, f"{self._prefix}{name}:", self._lease_seconds, secret)

    @asynccontextmanager
    async def join(self) -> AsyncIterator["RedisReplica"]:
        """Make the caller a replica for the duration of the block."""
        client = self._connect()
        replica = RedisReplica(client, self._prefix, self._lease_seconds, self._secret)
        async with aclosing(client):
            await replica.join()
            async with background() as tasks:
                for task in (replica.run, replica.renew, replica.wait_to_be_woken):
                    tasks.start_soon(task)
                try:
                    yield replica
                finally:
                    await replica.leave()


class RedisReplica:
    """One of the replicas that share a Redis. After a replica is lost, it must join again."""

    def __init__(self, client: Redis, prefix: str, lease_seconds: float, secret: bytes) -> None:
        self.secret = secret
        self.link = Link(client, prefix, lease_seconds, self._receive, self._lose, self._resubscribe)
        self.bus = RedisBus(self.link)
        self.sessions = RedisSessions(self.link, self.bus.handle)
        self.limiter = RedisLimiter(self.link)
        self.blobs = RedisBlobs(self.link)
        self._prefix = prefix
        self._log: RedisLog | None = None
        self._tasks: RedisTasks | None = None
        self._watchers: list[ReplicaWatcher] = []
        self._alive: set[int] = set()
        self._newest: int | None = None
        self._listen_scope = anyio.CancelScope()
        self._seconds_since_extension = 0.0
        self._is_leaving = False

    @property
    def number(self) -> int:
        """The number, from 0 to below 2^20. It changes after each loss of the replica."""
        return self.link.number

    @property
    def reason(self) -> str | None:
        """The reason that the other replicas can't be reached; None if they are reachable."""
        return self.link.reason

    def watch(self, watcher: ReplicaWatcher) -> None:
        """Notify `watcher` of the events of this replica and of the other replicas."""
        self._watchers.append(watcher)

    def log(self, limits: ReplayLimits) -> RedisLog:
        """Return the stream log."""
        self._log = self._log or RedisLog(self.link, limits)
        return self._log

    def tasks(self, limits: TaskLimits) -> RedisTasks:
        """Return the tasks of all replicas."""
        self._tasks = self._tasks or RedisTasks(self.link, limits)
        return self._tasks

    # Its life

    async def join(self) -> None:
        """Join the other replicas, retrying until Redis can be reached."""
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                await self.link.join()
        except (OSError, RedisError) as error:
            self.link.reason = outage_reason(error)
            log.error("--store: %s; retrying: %s", self.link.reason, error)

    async def leave(self) -> None:
        """Leave the sessions and tasks to the other replicas."""
        self._is_leaving = True
        self.sessions.release_all()
        if self._tasks is not None:
            self._tasks.close()
        if self._log is not None:
            self._log.unread.close()
        with anyio.move_on_after(LEAVE_SECONDS, shield=True), suppress(OSError, RedisError):
            await self.link.leave()

    async def run(self) -> None:
        """Run the operations, and join again after each loss."""
        while True:
            await self.link.run()
            while not self.link.is_joined:
                await asyncio.sleep(RETRY_SECONDS)
                if not self._is_leaving:
                    await self._rejoin()

    async def _rejoin(self) -> None:
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                await self.link.join()
        except (OSError, RedisError) as error:
            self.link.reason = outage_reason(error)
            return
        log.warning("this replica has joined the others as number %d", self.number)
        self._newest, self._alive = None, set()
        self._resubscribe()
        self.link.renew(self._on_renewed)
        self.bus.on_joined()
        if self._tasks is not None:
            self._tasks.on_joined()
        for watcher in self._watchers:
            watcher.on_return()

    async def renew(self) -> None:
        """Renew the lease in time; abandon everything on this replica if that fails."""
        pause = self.link.lease_seconds / RENEWALS
        while True:
            if self.link.is_joined:
                self.link.renew(self._on_renewed)
                self._extend(pause)
            waited = 0.0
            while waited < pause:
                # Awake when the lease ends: from that moment on, other replicas act instead.
                step = (
                    min(pause - waited, max(self.link.lease_seconds_left, 0.02))
                    if self.link.is_joined
                    else pause - waited
                )
                await asyncio.sleep(step)
                waited += step
                if self.link.is_joined and self.link.lease_seconds_left <= 0:
                    self.link.lose("its lease has expired, because Redis did not answer in time")

    async def wait_to_be_woken(self) -> None:
        """Read the inbox whenever a notification of an entry arrives."""
        while True:
            try:
                with anyio.CancelScope() as self._listen_scope:
                    await self._poll_when_woken()
            except (OSError, RedisError):
                await asyncio.sleep(0.1)

    async def _poll_when_woken(self) -> None:
        pubsub = self.link.client.pubsub()
        try:
            await pubsub.subscribe(f"{self._prefix}wake:{self.number}")
            while True:
                # Also without a notice: those sent while the connection was broken are lost.
                await pubsub.get_message(timeout=self.link.lease_seconds)
                self.link.poll_inbox()
        finally:
            with anyio.move_on_after(REPLY_SECONDS, shield=True):
                await pubsub.aclose()  # type: ignore[no-untyped-call]

    def _resubscribe(self) -> None:
        """Subscribe again: this replica has another number, or the primary is another Redis."""
        self._listen_scope.cancel()

    def _extend(self, seconds: float) -> None:
        """Extend the lifetime of sessions and streams, now and then."""
        self._seconds_since_extension += seconds
        if self._seconds_since_extension >= self.sessions.idle_seconds / 4:
            self._seconds_since_extension = 0.0
            self.sessions.extend()
            if self._log is not None:
                self._log.extend()

    def _on_renewed(self, newest: int, alive: set[int]) -> None:
        """Handle a renewal with the present replicas."""
        # Numbers are leased one after another. So a gap shows the replicas that joined and were lost between two
        # renewals, and may have left requests unanswered.
        arrived = (
            set() if self._newest is None else {number % NUMBERS for number in range(self._newest + 1, newest + 1)}
        )
        departed = (self._alive | arrived) - alive
        self._newest, self._alive = newest, alive
        if self._log is not None:
            self._log.on_renewed(alive)
        if departed and self._tasks is not None:
            self._tasks.wake_all()
        if departed:
            for watcher in self._watchers:
                watcher.on_departure()

    def _lose(self) -> None:
        log.error("this replica has lost its lease: %s", self.link.reason)
        self.sessions.lose()
        if self._log is not None:
            self._log.lose()
        for watcher in self._watchers:
            watcher.on_lost()

    def _receive(self, entry: list[bytes]) -> None:
        """Handle an entry of the inbox."""
        kind, name, first, second, third = entry
        match kind:
            case b"notice":
                self.bus.on_notice(name.decode(), first)
            case b"post":
                self.bus.on_post(name.decode(), first, second)
            case b"change":
                self.bus.on_change(name.decode(), first)
            case b"snapshot":
                self.sessions.on_snapshot(name.decode(), first, second)
            case b"ended":
                self.sessions.on_end(name.decode())
            case b"unwatch":
                self.sessions.on_unwatch(name.decode(), first.decode())
            case b"task" if self._tasks is not None:
                self._tasks.on_change(name.decode())
            case _ if self._log is not None:
                self._log.on_event(kind.decode(), name.decode(), first.decode(), second, third)

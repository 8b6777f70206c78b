"""The stores of replicas in Redis. A replica joins the others and gets a lease, which it has to renew. If it can't
renew the lease in time, it gives up all its sessions, and joins again under another number.

A replica needs two connections: one for all operations, and one on which it is notified of entries in its inbox.
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
"""How often the lease is renewed during its duration."""
NUMBERS = 2**20
"""How many numbers there are for replicas. They are given out one after another, and then from 0 again."""
RETRY_SECONDS = 0.1
"""Seconds between two attempts to rejoin."""
LEAVE_SECONDS = 2.0
"""Seconds that a stopping replica waits until its queued operations are done."""


class Stores:
    """Creates replicas, which share all keys with one prefix in one Redis."""

    def __init__(self, connect: Callable[[], Redis], prefix: str, lease_seconds: float, secret: bytes) -> None:
        """`connect` creates a client of Redis. `secret` is the same for all replicas."""
        self._connect = connect
        self._prefix = prefix
        self._lease_seconds = lease_seconds
        self._secret = secret

    def for_server(self, name: str) -> "Stores":
        """Return the stores of the server called `name`, separate from those of other servers."""
        # With a secret of its own, so that a cursor that one server has signed is invalid at another.
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
    """One of the replicas that share a Redis. After it was lost, it joins again."""

    def __init__(self, client: Redis, prefix: str, lease_seconds: float, secret: bytes) -> None:
        self.secret = secret
        self.link = Link(client, prefix, lease_seconds, self._receive, self._on_lost, self._resubscribe)
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
        """The number of the replica, less than `NUMBERS`. It gets another one each time it joins again."""
        return self.link.number

    @property
    def disconnect_reason(self) -> str | None:
        """Why Redis, and so the other replicas, can't be reached; None if they can."""
        return self.link.disconnect_reason

    def watch(self, watcher: ReplicaWatcher) -> None:
        """Notify `watcher` when this replica is lost or returns, and when another replica leaves."""
        self._watchers.append(watcher)

    def log(self, limits: ReplayLimits) -> RedisLog:
        """Return the log of event streams. The limits of the first call apply."""
        self._log = self._log or RedisLog(self.link, limits)
        return self._log

    def tasks(self, limits: TaskLimits) -> RedisTasks:
        """Return the tasks of all replicas. The limits of the first call apply."""
        self._tasks = self._tasks or RedisTasks(self.link, limits)
        return self._tasks

    # Joining and leaving

    async def join(self) -> None:
        """Try to join the other replicas. If Redis can't be reached, log that; `run` tries again."""
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                await self.link.join()
        except (OSError, RedisError) as error:
            self.link.disconnect_reason = outage_reason(error)
            log.error("--store: %s; retrying: %s", self.link.disconnect_reason, error)

    async def leave(self) -> None:
        """Leave the other replicas, which continue the sessions of this one."""
        self._is_leaving = True
        self.sessions.release_all()
        if self._tasks is not None:
            self._tasks.close()
        if self._log is not None:
            self._log.unread.close()
        with anyio.move_on_after(LEAVE_SECONDS, shield=True), suppress(OSError, RedisError):
            await self.link.leave()

    async def run(self) -> None:
        """Send operations while this is a replica, and rejoin each time it was lost. Runs until it is cancelled."""
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
            self.link.disconnect_reason = outage_reason(error)
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
        """Renew the lease in time. If it expires, give up everything that this replica has. Runs until cancelled."""
        pause = self.link.lease_seconds / RENEWALS
        while True:
            if self.link.is_joined:
                self.link.renew(self._on_renewed)
                self._extend(pause)
            waited = 0.0
            while waited < pause:
                # Wake up when the lease expires, since other replicas take over from that moment on.
                step = (
                    min(pause - waited, max(self.link.lease_seconds_left, 0.02))
                    if self.link.is_joined
                    else pause - waited
                )
                await asyncio.sleep(step)
                waited += step
                if self.link.is_joined and self.link.lease_seconds_left <= 0:
                    self.link.give_up_lease("its lease has expired, because Redis did not answer in time")

    async def wait_to_be_woken(self) -> None:
        """Fetch the entries of the inbox whenever Redis announces one. Runs until it is cancelled."""
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
                # Fetch the inbox also after a timeout: announcements that Redis sent while the connection was broken
                # are lost.
                await pubsub.get_message(timeout=self.link.lease_seconds)
                self.link.poll_inbox()
        finally:
            with anyio.move_on_after(REPLY_SECONDS, shield=True):
                await pubsub.aclose()  # type: ignore[no-untyped-call]

    def _resubscribe(self) -> None:
        """Subscribe to the announcements again: this replica has another number, or another Redis is the primary."""
        self._listen_scope.cancel()

    def _extend(self, seconds: float) -> None:
        """Postpone the expiry of sessions and streams, at a quarter of the shortest idle time. `seconds` have passed
        since the last call."""
        self._seconds_since_extension += seconds
        if self._seconds_since_extension >= self.sessions.idle_seconds / 4:
            self._seconds_since_extension = 0.0
            self.sessions.extend()
            if self._log is not None:
                self._log.extend()

    def _on_renewed(self, newest: int, alive: set[int]) -> None:
        """Handle a renewal: `newest` is the number given out last, `alive` are the numbers of all replicas."""
        # Numbers are given out one after another. So those between the last newest and this one belong to replicas
        # that have joined since; one that is not alive was lost again, and may have left requests unanswered.
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

    def _on_lost(self) -> None:
        log.error("this replica has lost its lease: %s", self.link.disconnect_reason)
        self.sessions.on_lost()
        if self._log is not None:
            self._log.on_lost()
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

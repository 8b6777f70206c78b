"""The connection of one replica to Redis: operations are sent in order, many at once, and take effect once.

    ask, enqueue ──▶ queue ──▶ one batch on its way ──▶ a script in Redis ──▶ entries of the inbox, replies in order

While a batch is on its way the next one collects, so that a busy replica makes few trips and an idle one short ones.
If a connection breaks, the same batch is sent again: Redis knows whether it was carried out. Callers wait for a reply
for a short time; an operation without a waiting caller is kept until it is done, or the lease is lost.

The others give up a replica that could not renew its lease in time. From then on its operations have no effect: the
queue is dropped, and it begins again with another number.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable
from hashlib import sha1
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, ReadOnlyError, RedisError, ResponseError

from ...concurrency import Signal
from ...errors import Unavailable
from .scripts import BATCH, JOIN, LEAVE

log = logging.getLogger("shared.stores")

Arguments = tuple[bytes | str | int | float, ...]
Reply = Callable[[Any], None]
Undo = Callable[[Any], Arguments | None]
"""Accepts a reply, and returns the operation, with its arguments, that undoes the effect."""

MAX_OPERATIONS, MAX_BATCH_BYTES = 256, 1_048_576
"""Maximum number and size of the operations in one batch: while it runs, Redis serves no other client."""
QUEUED_BYTES = 256 * 1_048_576
"""Bytes that may wait while there is a lease."""
OPERATION_BYTES = 500
"""Bytes that a waiting operation takes in addition to its texts."""
REPLY_SECONDS = 2.0
"""Seconds that a caller waits for a reply."""
BUSY_OPERATIONS, GATHER_SECONDS = 4, 0.001
"""After a batch with this number of operations, the next batch waits for this time, so that it grows as large: each
round trip costs as much as ten operations."""
_ENTRY_FIELDS = 5
"""The number of fields of an entry of the inbox."""
_DIGEST = sha1(BATCH.encode(), usedforsecurity=False).hexdigest()
_FIRST_PAUSE, _MAX_PAUSE = 0.05, 1.0
"""Seconds between two attempts to send a batch: the first pause, which doubles, and the longest."""


class _Operation:
    """One operation, and the receivers of its reply."""

    __slots__ = ("answer", "arguments", "is_patient", "name", "reply", "requested_at", "size", "undo")

    def __init__(self, name: str, arguments: Arguments, requested_at: float) -> None:
        self.name = name
        self.arguments = arguments
        self.size = OPERATION_BYTES
        for argument in arguments:
            if type(argument) is bytes or type(argument) is str:
                self.size += len(argument)
        self.requested_at = requested_at
        self.reply: Reply | None = None
        self.answer: asyncio.Future[Any] | None = None
        self.is_patient = False
        """True if the caller waits while there is a lease."""
        self.undo: Undo | None = None
        """Returns the operation that undoes this one, if its caller no longer waits."""


class Link:
    """The operations of one replica."""

    def __init__(
        self,
        client: Redis,
        prefix: str,
        lease_seconds: float,
        on_entry: Callable[[list[bytes]], None],
        on_lost: Callable[[], None],
        on_failover: Callable[[], None],
    ) -> None:
        """`on_entry` is called with each entry of the inbox; `on_lost` when the lease is lost, `on_failover` when
        another Redis instance may have become primary, so connections must be reopened."""
        self.client = client
        self.prefix = prefix
        self.lease_seconds = lease_seconds
        self.number = 0
        self.reason: str | None = "it has not joined the other replicas yet"
        """The reason that the others can't be reached; None if they are reachable."""
        self.is_joined = False
        self._on_entry = on_entry
        self._on_lost = on_lost
        self._on_failover = on_failover
        self._queue: deque[_Operation] = deque()
        self._size = 0
        self._current_batch: list[_Operation] = []
        self._batch = 0
        self._token = ""
        self._changed = Signal()
        self._lease_ends = 0.0
        self._loop = asyncio.get_running_loop()
        self._down_since: float | None = None

    # For the parts of a replica

    def enqueue(self, name: str, *arguments: bytes | str | int | float, reply: Reply | None = None) -> None:
        """Queue an operation. `reply` is called with its reply, unless the lease is lost first."""
        if self.is_joined:
            operation = _Operation(name, arguments, self._loop.time())
            operation.reply = reply
            self._add(operation)

    async def ask(
        self, name: str, *arguments: bytes | str | int | float, undo: Undo | None = None, is_patient: bool = False
    ) -> Any:
        """Return the reply to an operation. Raises Unavailable if there is none in time, or with `is_patient` only
        after the lease is lost; it is then unknown whether the operation was carried out. `undo` returns the
        operation that undoes it if its caller no longer waits."""
        # At once, if it is known that Redis can't be reached: otherwise each request would wait for two seconds to
        # learn the same.
        if not self.is_joined or (self._is_unreachable and not is_patient):
            raise Unavailable
        operation = _Operation(name, arguments, self._loop.time())
        operation.undo, operation.is_patient = undo, is_patient
        operation.answer = self._loop.create_future()
        self._add(operation)
        try:
            return await operation.answer
        except asyncio.CancelledError:
            if not operation.answer.cancelled() and operation.answer.exception() is None:
                self._undo(operation, operation.answer.result())  # it was answered in this turn of the loop
            raise

    def poll_inbox(self) -> None:
        """Read the inbox, which may have entries."""
        if not self._queue:
            self.enqueue("look")

    @property
    def _is_unreachable(self) -> bool:
        return self._down_since is not None and self._loop.time() - self._down_since > REPLY_SECONDS

    def _add(self, operation: _Operation) -> None:
        self._queue.append(operation)
        self._size += operation.size
        if len(self._queue) == 1:
            self._changed.wake()
        if self._size > QUEUED_BYTES:
            # Not at once: the caller may be in the middle of work that losing the lease undoes.
            self._loop.call_soon(self._lose_if_full)

    def _lose_if_full(self) -> None:
        if self.is_joined and self._size > QUEUED_BYTES:
            self.lose("too much data is waiting for Redis")

    # The lease

    async def join(self) -> None:
        """Become a replica. Raises RedisError or OSError on failure."""
        started_at = self._loop.time()
        milliseconds = round(self.lease_seconds * 1000)
        token = secrets.token_hex(8)
        self.number = int(await self._run(JOIN, self.prefix, milliseconds, token))
        self._token = token
        self._queue.clear()
        self._batch = self._size = 0
        self._lease_ends = started_at + self.lease_seconds
        self.is_joined, self.reason, self._down_since = True, None, None

    async def leave(self) -> None:
        """Leave the other replicas, once the queued operations are done. Raises RedisError or OSError if the other
        replicas could not be notified, and must detect the departure themselves."""
        if self.is_joined:
            await self.ask("look")
            self._end("it has left the other replicas")
            await self._run(LEAVE, self.prefix, self.number, self._token)

    async def _run(self, script: str, *arguments: Any) -> Any:
        return await self._await_reply(self.client.eval(script, 0, *arguments))

    async def _await_reply(self, answer: Any) -> Any:
        try:
            return await answer
        except ReadOnlyError:
            # It was the primary, and no longer is. Its name may lead to another by now. Connections in use stay open:
            # a task that opens one that is closed meanwhile would get an AttributeError.
            await self.client.connection_pool.disconnect(inuse_connections=False)
            self._on_failover()
            raise

    def renew(self, on_renewed: Callable[[int, set[int]], None]) -> None:
        """Renew the lease; `on_renewed` is called with the number that was leased last, and the numbers of all
        replicas."""
        requested_at = self._loop.time()

        def on_reply(numbers: list[bytes]) -> None:
            # Counted from the request, not from the reply: Redis may have counted since then, and ours must end
            # first.
            self._lease_ends = max(self._lease_ends, requested_at + self.lease_seconds)
            newest, *others = map(int, numbers)
            on_renewed(newest, set(others))

        self.enqueue("renew", round(self.lease_seconds * 1000), reply=on_reply)

    @property
    def lease_seconds_left(self) -> float:
        """Seconds until other replicas may take over."""
        return self._lease_ends - self._loop.time()

    def lose(self, reason: str) -> None:
        """Handle the loss of the lease: waiting operations are dropped."""
        self._end(reason)
        self._on_lost()

    def _end(self, reason: str) -> None:
        self.is_joined, self.reason = False, reason
        pending, self._queue = (*self._current_batch, *self._queue), deque()
        self._size = 0
        for operation in pending:
            self._fail(operation)
        self._changed.wake()

    # The trips

    async def run(self) -> None:
        """Run the operations while this is a replica. Returns when the lease is lost."""
        pause = _FIRST_PAUSE
        self._current_batch = []
        while self.is_joined:
            # The same batch once more after a failure: its number shows Redis whether it was already done.
            batch = self._current_batch = self._current_batch or self._next_batch()
            if not batch:
                await self._changed.wait()
                continue
            try:
                answer = await self._send(batch)
            except (RedisError, OSError) as error:
                if not self.is_joined:
                    break
                # The script refuses operations of a number that has another token by now.
                if isinstance(error, ResponseError) and str(error).startswith("LEASE"):
                    self.lose("its lease has expired")
                    break
                self._handle_outage(error, batch)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE)
                continue
            if not self.is_joined:
                break
            # The others may have answered for this replica while the reply was on its way: it must not act on it.
            if self.lease_seconds_left <= 0:
                self.lose("its lease had expired when Redis answered")
                break
            pause, self.reason, self._down_since = _FIRST_PAUSE, None, None
            self._current_batch = []
            self._deliver(batch, answer)
            if len(batch) >= BUSY_OPERATIONS:
                await asyncio.sleep(GATHER_SECONDS)

    def _next_batch(self) -> list[_Operation]:
        batch: list[_Operation] = []
        size = 0
        while self._queue and len(batch) < MAX_OPERATIONS and size < MAX_BATCH_BYTES:
            operation = self._queue.popleft()
            self._size -= operation.size
            # An operation whose caller no longer waits is not done.
            if operation.answer is None or not operation.answer.done():
                batch.append(operation)
                size += operation.size
        if batch:
            self._batch += 1
        return batch

    async def _send(self, batch: list[_Operation]) -> Any:
        words = [self.prefix.encode(), b"%d" % self.number, self._token.encode(), b"%d" % self._batch]
        for operation in batch:
            words += (operation.name.encode(), b"%d" % len(operation.arguments))
            # The library would take five times as long.
            words += [
                argument if type(argument) is bytes else str(argument).encode(errors="surrogatepass")
                for argument in operation.arguments
            ]
        async with asyncio.timeout(max(min(self.lease_seconds_left, REPLY_SECONDS), 0.05)):
            try:
                # By its digest: the script itself is longer than most batches.
                return await self._await_reply(self.client.evalsha(_DIGEST, 0, *words))
            # Redis was restarted, or another instance took over and does not know it yet.
            except NoScriptError:
                return await self._run(BATCH, *words)

    def _handle_outage(self, error: Exception, batch: list[_Operation]) -> None:
        """Handle a failure of Redis to answer: callers that have waited long enough get an error."""
        reason = outage_reason(error)
        if self.reason is None:
            log.warning("%s: %s", reason, error)
        self.reason = reason
        self._down_since = self._down_since or batch[0].requested_at
        latest = self._loop.time() - REPLY_SECONDS
        for operation in (*batch, *self._queue):
            if operation.requested_at <= latest and not operation.is_patient:
                self._fail(operation)

    def _fail(self, operation: _Operation) -> None:
        if operation.answer is not None and not operation.answer.done():
            operation.answer.set_exception(Unavailable(may_have_run=True))

    def _deliver(self, batch: list[_Operation], answer: Any) -> None:
        # Each in a separate callback: an error in one is logged by the loop, and the others continue.
        inbox, replies = answer
        for start in range(0, len(inbox), _ENTRY_FIELDS):
            self._loop.call_soon(self._on_entry, inbox[start : start + _ENTRY_FIELDS])
        for operation, reply in zip(batch, replies, strict=True):
            if isinstance(reply, list) and reply and reply[0] == b"ERROR":
                log.error("%s failed in Redis: %s", operation.name, reply[1].decode(errors="replace"))
                self._fail(operation)
            elif operation.reply is not None:
                self._loop.call_soon(operation.reply, reply)
            elif operation.answer is not None:
                if not operation.answer.done():
                    operation.answer.set_result(reply)
                else:
                    self._undo(operation, reply)

    def _undo(self, operation: _Operation, reply: Any) -> None:
        words = None if operation.undo is None else operation.undo(reply)
        if words is not None:
            name, *arguments = words
            self.enqueue(str(name), *arguments)


def outage_reason(error: Exception) -> str:
    """Return the public reason, which contains nothing about the address of Redis."""
    return f"Redis can't be reached ({type(error).__name__})"

"""The connection of one replica to Redis: operations are sent in order, many at once, and take effect once.

    ask, enqueue ──▶ queue ──▶ one batch on its way ──▶ a script in Redis ──▶ inbox entries, and replies in order

While a batch is on its way, further operations collect for the next one. So a busy replica makes few round trips, and
an idle one sends each operation at once. If a connection breaks, the same batch is sent again: by the number of the
batch, the script knows whether it was already carried out. Callers wait for a reply for a short time; an operation
that no caller waits for stays in the queue until it is done or the lease is lost.

A replica that does not renew its lease in time counts as lost for the others. From then on, its operations have no
effect: it drops its queue, and joins again with another number.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from hashlib import sha1
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, ReadOnlyError, RedisError, ResponseError

from ...concurrency import Signal
from ...errors import Unavailable
from .scripts import BATCH, JOIN, LEAVE

log = logging.getLogger("shared.stores")

Arguments = tuple[bytes | str | int | float, ...]
OnReply = Callable[[Any], None]
Undo = Callable[[Any], Arguments | None]
"""Given the reply to an operation, returns the name and arguments of the operation that undoes it; None if there is
nothing to undo."""

MAX_OPERATIONS, MAX_BATCH_BYTES = 256, 1_048_576
"""Maximum number and total size of the operations in one batch. It is limited because Redis serves no other client
while the script runs."""
MAX_QUEUED_BYTES = 256 * 1_048_576
"""Maximum number of bytes in the queue. If there are more, the replica gives up its lease."""
OPERATION_BYTES = 500
"""Bytes that an operation in the queue takes in addition to its arguments."""
REPLY_SECONDS = 2.0
"""Seconds that a caller waits for a reply."""
BUSY_OPERATIONS, GATHER_SECONDS = 4, 0.001
"""After a batch of at least `BUSY_OPERATIONS`, the link waits for `GATHER_SECONDS`, so that the next batch has about
as many operations as the last: a round trip costs as much as ten operations."""
_ENTRY_FIELDS = 5
"""The number of fields that each entry of the inbox has."""
_DIGEST = sha1(BATCH.encode(), usedforsecurity=False).hexdigest()
_FIRST_PAUSE, _MAX_PAUSE = 0.05, 1.0
"""Seconds between two attempts to send a batch: the first pause, which doubles, and the longest."""


class _Operation:
    """One operation. Its reply is passed to the callback `on_reply`, or to the future `answer`, or is ignored."""

    __slots__ = ("answer", "arguments", "is_patient", "name", "on_reply", "requested_at", "size", "undo")

    def __init__(self, name: str, arguments: Arguments, requested_at: float) -> None:
        self.name = name
        self.arguments = arguments
        self.size = OPERATION_BYTES
        for argument in arguments:
            if type(argument) is bytes or type(argument) is str:
                self.size += len(argument)
        self.requested_at = requested_at
        self.on_reply: OnReply | None = None
        self.answer: asyncio.Future[Any] | None = None
        self.is_patient = False
        """True if the caller waits as long as there is a lease, not only for `REPLY_SECONDS`."""
        self.undo: Undo | None = None
        """Used if the reply arrives after the caller has stopped waiting."""


class Link:
    """Sends the operations of one replica to Redis."""

    def __init__(
        self,
        client: Redis,
        prefix: str,
        lease_seconds: float,
        on_entry: Callable[[list[bytes]], None],
        on_lost: Callable[[], None],
        on_failover: Callable[[], None],
    ) -> None:
        """`on_entry` is called with each entry of the inbox, `on_lost` when the lease is lost, and `on_failover` when
        another Redis may have become the primary, so that connections must be reopened."""
        self.client = client
        self.prefix = prefix
        self.lease_seconds = lease_seconds
        self.number = 0
        """The number of this replica. `join` gets a new one."""
        self.disconnect_reason: str | None = "it has not joined the other replicas yet"
        """Why Redis, and so the other replicas, can't be reached; None if they can."""
        self.is_joined = False
        self._on_entry = on_entry
        self._on_lost = on_lost
        self._on_failover = on_failover
        self._queue: deque[_Operation] = deque()
        self._queued_bytes = 0
        self._current_batch: list[_Operation] = []
        self._batch_number = 0
        self._token = ""
        self._changed = Signal()
        self._lease_ends = 0.0
        self._loop = asyncio.get_running_loop()
        self._down_since: float | None = None

    # Called by the other parts of this replica

    def enqueue(self, name: str, *arguments: bytes | str | int | float, on_reply: OnReply | None = None) -> None:
        """Queue an operation. `on_reply` is called with the reply, unless the lease is lost before."""
        if self.is_joined:
            operation = _Operation(name, arguments, self._loop.time())
            operation.on_reply = on_reply
            self._add(operation)

    async def ask(
        self, name: str, *arguments: bytes | str | int | float, undo: Undo | None = None, is_patient: bool = False
    ) -> Any:
        """Queue an operation and return its reply. Raises Unavailable at once if Redis is known to be unreachable,
        and with `may_have_run` if the lease is lost or, unless `is_patient`, if there is no reply in time. If a
        reply arrives after the caller has stopped waiting, the operation that `undo` returns is sent."""
        # If it is known that Redis can't be reached, fail at once: otherwise each caller would wait for
        # `REPLY_SECONDS`.
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
        """Fetch the entries of the inbox: each batch returns them, so send one if none is due."""
        if not self._queue:
            self.enqueue("look")

    @property
    def _is_unreachable(self) -> bool:
        return self._down_since is not None and self._loop.time() - self._down_since > REPLY_SECONDS

    def _add(self, operation: _Operation) -> None:
        self._queue.append(operation)
        self._queued_bytes += operation.size
        if len(self._queue) == 1:
            self._changed.wake()
        if self._queued_bytes > MAX_QUEUED_BYTES:
            # In a later turn: `give_up_lease` would otherwise change the state of the caller in the middle of its
            # work.
            self._loop.call_soon(self._give_up_lease_if_full)

    def _give_up_lease_if_full(self) -> None:
        if self.is_joined and self._queued_bytes > MAX_QUEUED_BYTES:
            self.give_up_lease("too much data is waiting for Redis")

    # The lease

    async def join(self) -> None:
        """Become a replica. Raises RedisError or OSError on failure."""
        started_at = self._loop.time()
        milliseconds = round(self.lease_seconds * 1000)
        token = secrets.token_hex(8)
        self.number = int(await self._run(JOIN, self.prefix, milliseconds, token))
        self._token = token
        self._queue.clear()
        self._batch_number = self._queued_bytes = 0
        self._lease_ends = started_at + self.lease_seconds
        self.is_joined, self.disconnect_reason, self._down_since = True, None, None

    async def leave(self) -> None:
        """Leave the other replicas, after the queued operations are done. Raises RedisError or OSError if the others
        could not be notified; they then notice it when the lease expires."""
        if self.is_joined:
            await self.ask("look")
            self._end("it has left the other replicas")
            await self._run(LEAVE, self.prefix, self.number, self._token)

    async def _run(self, script: str, *arguments: Any) -> Any:
        return await self._await_reply(self.client.eval(script, 0, *arguments))

    async def _await_reply(self, reply: Awaitable[Any]) -> Any:
        try:
            return await reply
        except ReadOnlyError:
            # This Redis is no longer the primary. Its name may lead to the new one by now, so reconnect. Connections
            # in use are not closed, because the library raises an AttributeError in a task that is just opening one.
            await self.client.connection_pool.disconnect(inuse_connections=False)
            self._on_failover()
            raise

    def renew(self, on_renewed: Callable[[int, set[int]], None]) -> None:
        """Renew the lease. `on_renewed` gets the number of the newest replica, and those of all living replicas."""
        requested_at = self._loop.time()

        def on_reply(numbers: list[bytes]) -> None:
            # Redis counts from some time between the request and the reply. This side counts from the request, so
            # that it never believes in a lease that has already expired in Redis.
            self._lease_ends = max(self._lease_ends, requested_at + self.lease_seconds)
            newest, *living = map(int, numbers)
            on_renewed(newest, set(living))

        self.enqueue("renew", round(self.lease_seconds * 1000), on_reply=on_reply)

    @property
    def lease_seconds_left(self) -> float:
        """Seconds until other replicas may take over."""
        return self._lease_ends - self._loop.time()

    def give_up_lease(self, reason: str) -> None:
        """Give up the lease because of `reason`: all operations that are not done are dropped."""
        self._end(reason)
        self._on_lost()

    def _end(self, reason: str) -> None:
        self.is_joined, self.disconnect_reason = False, reason
        pending, self._queue = (*self._current_batch, *self._queue), deque()
        self._queued_bytes = 0
        for operation in pending:
            self._fail(operation)
        self._changed.wake()

    # Sending batches

    async def run(self) -> None:
        """Send the queued operations until the lease is lost."""
        pause = _FIRST_PAUSE
        self._current_batch = []
        while self.is_joined:
            # After a failure, send the same batch again: by its number, the script knows whether it was already
            # carried out.
            batch = self._current_batch = self._current_batch or self._next_batch()
            if not batch:
                await self._changed.wait()
                continue
            try:
                results = await self._send(batch)
            except (RedisError, OSError) as error:
                if not self.is_joined:
                    break
                # The script answers with this error if the number now belongs to a replica with another token.
                if isinstance(error, ResponseError) and str(error).startswith("LEASE"):
                    self.give_up_lease("its lease has expired")
                    break
                self._handle_outage(error, batch)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE)
                continue
            if not self.is_joined:
                break
            # While the reply was on its way, other replicas may have taken over the work of this one, so it must not
            # act on the reply.
            if self.lease_seconds_left <= 0:
                self.give_up_lease("its lease had expired when Redis answered")
                break
            pause, self.disconnect_reason, self._down_since = _FIRST_PAUSE, None, None
            self._current_batch = []
            self._deliver(batch, results)
            if len(batch) >= BUSY_OPERATIONS:
                await asyncio.sleep(GATHER_SECONDS)

    def _next_batch(self) -> list[_Operation]:
        batch: list[_Operation] = []
        size = 0
        while self._queue and len(batch) < MAX_OPERATIONS and size < MAX_BATCH_BYTES:
            operation = self._queue.popleft()
            self._queued_bytes -= operation.size
            # Skip an operation whose caller no longer waits.
            if operation.answer is None or not operation.answer.done():
                batch.append(operation)
                size += operation.size
        if batch:
            self._batch_number += 1
        return batch

    async def _send(self, batch: list[_Operation]) -> Any:
        arguments = [self.prefix.encode(), b"%d" % self.number, self._token.encode(), b"%d" % self._batch_number]
        for operation in batch:
            arguments += (operation.name.encode(), b"%d" % len(operation.arguments))
            # Encoding them here takes a fifth of the time that the library needs.
            arguments += [
                argument if type(argument) is bytes else str(argument).encode(errors="surrogatepass")
                for argument in operation.arguments
            ]
        async with asyncio.timeout(max(min(self.lease_seconds_left, REPLY_SECONDS), 0.05)):
            try:
                # Send the digest instead of the script, which is longer than most batches.
                return await self._await_reply(self.client.evalsha(_DIGEST, 0, *arguments))
            # Redis was restarted, or another instance has become the primary, and does not have the script yet.
            except NoScriptError:
                return await self._run(BATCH, *arguments)

    def _handle_outage(self, error: Exception, batch: list[_Operation]) -> None:
        """Record that Redis did not answer. Callers that have waited for `REPLY_SECONDS` get an error."""
        reason = outage_reason(error)
        if self.disconnect_reason is None:
            log.warning("%s: %s", reason, error)
        self.disconnect_reason = reason
        self._down_since = self._down_since or batch[0].requested_at
        cutoff = self._loop.time() - REPLY_SECONDS
        for operation in (*batch, *self._queue):
            if operation.requested_at <= cutoff and not operation.is_patient:
                self._fail(operation)

    def _fail(self, operation: _Operation) -> None:
        if operation.answer is not None and not operation.answer.done():
            operation.answer.set_exception(Unavailable(may_have_run=True))

    def _deliver(self, batch: list[_Operation], results: Any) -> None:
        # Each callback runs in its own turn of the event loop, so that an error in one is only logged and does not
        # affect the others.
        inbox, replies = results
        for start in range(0, len(inbox), _ENTRY_FIELDS):
            self._loop.call_soon(self._on_entry, inbox[start : start + _ENTRY_FIELDS])
        for operation, reply in zip(batch, replies, strict=True):
            if isinstance(reply, list) and reply and reply[0] == b"ERROR":
                log.error("%s failed in Redis: %s", operation.name, reply[1].decode(errors="replace"))
                self._fail(operation)
            elif operation.on_reply is not None:
                self._loop.call_soon(operation.on_reply, reply)
            elif operation.answer is not None:
                if not operation.answer.done():
                    operation.answer.set_result(reply)
                else:
                    self._undo(operation, reply)

    def _undo(self, operation: _Operation, reply: Any) -> None:
        inverse = None if operation.undo is None else operation.undo(reply)
        if inverse is not None:
            name, *arguments = inverse
            self.enqueue(str(name), *arguments)


def outage_reason(error: Exception) -> str:
    """Return the reason of an outage in words for clients, without the address of Redis."""
    return f"Redis can't be reached ({type(error).__name__})"

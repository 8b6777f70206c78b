"""One connection, which runs one statement at a time and can be stopped.

Statements go by the extended protocol, which takes one at a time, with values beside it and never in it. Rows are
read one by one, so that what is too large is noticed while it arrives: a result takes no more memory than it may. One
row is the exception. libpq reads it whole where it arrives faster than that can be noticed, as by TCP from this same
machine; then it is refused when it is there, and PostgreSQL's own limit of a gigabyte holds meanwhile.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import anyio
from psycopg import Error, OperationalError, pq
from psycopg.pq.abc import PGconn, PGresult

from servers.common.sql.errors import SqlError
from servers.postgres.engine.answers import Cell, decode, encode_all, encode_text
from servers.postgres.engine.connecting import OpeningError, connect
from servers.postgres.engine.deadline import Deadline, Limits
from servers.postgres.engine.rows import Collector, Column, Room, Rows, Take, row_too_large
from servers.postgres.engine.socket_backlog import count_arrived
from servers.postgres.engine.target import Target
from servers.postgres.engine.transactions import (
    FORGET,
    SERVED_BY,
    TransactionStart,
    format_end,
    format_release,
)
from servers.postgres.errors import from_broken, from_result

Ask = Callable[..., Awaitable[list[tuple[Any, ...]]]]
"""Asks a question of our own: its SQL, and its parameters."""

__all__ = ["Ask", "Column", "Link", "Rows", "open_link"]

_OLDEST = 130_000
_GRACE = 2.0
"""Seconds in which a statement that was cancelled should have ended."""
_CLEANING = 5.0
"""Seconds that ending a transaction may take."""
_MOST_NOTIFICATIONS = 10_000
_NO_ROOM = Room(0, 0)
_COPIES = (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH)


class Link:
    """One connection, for one caller at a time. Close it at the end.

    Where it `is_shared`, other clients have the same process of PostgreSQL between its transactions.
    """

    def __init__(self, pgconn: PGconn, limits: Limits, *, is_shared: bool = False) -> None:
        self.limits = limits
        self.is_shared = is_shared
        self.backend = pgconn.backend_pid
        """The process of PostgreSQL that serves it; where it is shared, the first one that did."""
        self.notifications: deque[pq.PGnotify] = deque(maxlen=_MOST_NOTIFICATIONS)
        """What LISTEN heard, the newest ones."""
        self._pgconn = pgconn
        self._start = TransactionStart(limits, {}, checks_client=False)
        self._writes = False
        """Whether the transaction, or the last one, may change the database."""
        self._at_work = False
        self._arrived = 0
        """Bytes of the row that is on its way."""

    @property
    def is_broken(self) -> bool:
        """Whether it is of no more use."""
        return self._pgconn.status != pq.ConnStatus.OK

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and not ended, also one that failed."""
        return self._pgconn.transaction_status != pq.TransactionStatus.IDLE

    @property
    def version(self) -> int:
        """Of PostgreSQL, as 150004 is 15.4."""
        return self._pgconn.server_version

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler stands between: a process of PostgreSQL says its own number, and a pooler makes one up."""
        return self._pgconn.backend_pid != self.backend

    async def learn(self, settings: Mapping[str, str]) -> None:
        """Finds out who serves it; each transaction has these `settings` of the operator. Raises SqlError."""
        deadline = Deadline(self.limits.seconds)
        ((self.backend, checks_client),) = await self.ask(SERVED_BY, deadline=deadline)
        self._start = TransactionStart(self.limits, settings, checks_client=checks_client)

    async def run(
        self,
        sql: str,
        parameters: Sequence[Cell] = (),
        *,
        deadline: Deadline,
        before: str = "",
        most: int | None = None,
        take: Take | None = None,
    ) -> Rows:
        """Runs one statement; `before` stands before it, and errors tell positions without it.

        Rows are kept up to `most` bytes of memory, and one at least; without it, the statement is stopped where its
        rows take more than one value may. With `take` none are kept: it is given some at a time, while they arrive.
        Raises SqlError, `timeout` at the `deadline`. The statement is stopped too where the caller is cancelled.
        """
        text = encode_text(before + sql, "bad_statement")
        if any(value is not None and b"\0" in value for value in parameters):
            raise SqlError("bad_parameters", "a value holds the character U+0000, which no text of PostgreSQL holds")
        most_row = self.limits.value_bytes
        room = Room(most_row if most is None else most, most_row, most is not None, take)
        async with self._working(deadline):
            self._pgconn.send_query_params(text, parameters or None)
            # libpq takes it just behind a query, and at no other time.
            self._pgconn.set_single_row_mode()
            await self._send()
            return await self._read(sql, len(before), room)

    async def copy_in(self, sql: str, parts: AsyncIterator[bytes], *, deadline: Deadline) -> None:
        """Runs COPY … FROM STDIN, of our own, with all `parts`, of whole rows each. Raises SqlError, and what `parts`
        raises."""
        async with self._working(deadline):
            self._pgconn.send_query_params(encode_text(sql, "bad_statement"), None)
            await self._send()
            result = await self._next()
            if result is not None and result.status == pq.ExecStatus.COPY_IN:
                await self._put(parts)
            elif result is not None:
                while await self._next() is not None:
                    """What comes after an error tells nothing more."""
                raise from_result(result, sql)
            await self._read(sql, 0, _NO_ROOM)

    async def describe(self, sql: str, *, deadline: Deadline, before: str = "") -> tuple[Column, ...]:
        """The columns of the rows that a statement would give. Raises SqlError for what it may not do, or where it
        means nothing."""
        text = encode_text(before + sql, "bad_statement")
        async with self._working(deadline):
            self._pgconn.send_prepare(b"", text)
            await self._send()
            await self._read(sql, len(before), _NO_ROOM)
        async with self._working(deadline):
            self._pgconn.send_describe_prepared(b"")
            await self._send()
            return (await self._read(sql, len(before), _NO_ROOM)).columns

    async def ask(self, sql: str, *parameters: object, deadline: Deadline) -> list[tuple[Any, ...]]:
        """Rows for a question of our own: their values are str, int, float, bool, None, or lists of these.

        Raises SqlError.
        """
        found = await self.run(sql, encode_all(parameters), deadline=deadline)
        oids = [column.oid for column in found.columns]
        return [tuple(map(decode, row, oids)) for row in found.rows]

    @asynccontextmanager
    async def transaction(self, deadline: Deadline, mode: str = "READ ONLY") -> AsyncIterator[None]:
        """A transaction that is rolled back at the end of the block, unless it has ended by then. Raises SqlError."""
        try:
            await self.begin(deadline, mode)
            yield
        finally:
            await self.roll_back()

    async def begin(self, deadline: Deadline, mode: str = "READ ONLY", *, patience: float | None = None) -> None:
        """Begins a transaction in which a statement may take as long as the `deadline` says, and has all that
        statements need set for it. Raises SqlError, `unavailable` where it has not begun after the seconds of
        `patience`; then the connection is closed."""
        self._writes = mode.endswith("WRITE")
        seconds = deadline.left if patience is None else min(patience, deadline.left)
        async with self._working(Deadline(seconds), cancels=False):
            await self._send_own(self._start.format(mode, deadline.seconds))

    async def commit(self, deadline: Deadline) -> None:
        """Makes the changes of the transaction last, and nothing else that they left in the session. Raises
        SqlError."""
        await self._run_own(f"{FORGET}; {format_release()}", deadline)
        with deadline.committing():
            await self._run_own("COMMIT", deadline)

    async def roll_back(self) -> None:
        """Ends a transaction, if there is one, and leaves nothing of it in the session; closes the connection where
        that fails."""
        with anyio.CancelScope(shield=True):
            try:
                deadline = Deadline(_CLEANING)
                if self.in_transaction:
                    await self._run_own(format_end(writes=self._writes), deadline)
                if self._writes and not self.is_shared:
                    # A function may have changed any setting. Elsewhere that was looked for before COMMIT.
                    await self._run_own("DISCARD ALL", deadline)
                self._writes = False
            except SqlError:
                self.close()

    def close(self) -> None:
        """Closes it, whatever it is at."""
        self._at_work = False
        self._pgconn.finish()

    def notice_end(self) -> None:
        """Looks whether the other side has closed it, while nothing is under way; then it is broken."""
        try:
            self._pgconn.consume_input()
            self._take_notifications()
        except OperationalError:
            self.close()

    async def hear(self) -> None:
        """Waits until there are notifications, while nothing is under way. Raises SqlError where it breaks."""
        while not self.notifications and not self.is_broken:
            await anyio.wait_readable(self._pgconn.socket)
            self.notice_end()
        if self.is_broken:
            raise from_broken()

    @asynccontextmanager
    async def _working(self, deadline: Deadline, *, cancels: bool = True) -> AsyncIterator[None]:
        """What is sent within the block has ended at its end, or was stopped: it is cancelled, or else the connection
        is closed. Raises SqlError."""
        try:
            with anyio.fail_after(deadline.left):
                yield
        except TimeoutError:
            is_heard = cancels and await self._stop()
            raise deadline.reason(is_heard=is_heard) from None
        except OperationalError:
            if not self.is_broken:
                raise
            raise from_broken() from None
        finally:
            if self._at_work and cancels:
                await self._stop()
            elif self._at_work:
                self.close()

    async def _run_own(self, text: str, deadline: Deadline) -> None:
        """Runs statements of our own as one message, which no pooler parts. Raises SqlError."""
        async with self._working(deadline):
            await self._send_own(text)

    async def _send_own(self, text: str) -> None:
        self._pgconn.send_query(text.encode())
        await self._send()
        await self._read(text, 0, _NO_ROOM)

    async def _send(self) -> None:
        self._at_work = True
        self._arrived = 0
        await self._flush()

    async def _flush(self) -> None:
        while self._pgconn.flush():
            await anyio.wait_writable(self._pgconn.socket)

    async def _put(self, parts: AsyncIterator[bytes]) -> None:
        why: bytes | None = b"stopped"
        try:
            async for part in parts:
                # False where the buffers of libpq are full.
                while not self._pgconn.put_copy_data(part):
                    await anyio.wait_writable(self._pgconn.socket)
                await self._flush()
                if count_arrived(self._pgconn.socket):
                    break  # An error, which comes for good only once the rows have ended.
            why = None
        finally:
            await self._end_copy(why)

    async def _end_copy(self, why: bytes | None) -> None:
        """Ends the rows; nothing else can be asked until then. `why` says why not all came."""
        with ExitStack() as unless_ended:
            unless_ended.callback(self.close)
            with anyio.move_on_after(_GRACE, shield=True):
                if why is not None:
                    # PostgreSQL may wait for something else than rows, and read none.
                    await _cancel(self._pgconn)
                while not self._pgconn.put_copy_end(why):
                    await anyio.wait_writable(self._pgconn.socket)
                await self._flush()
                unless_ended.pop_all()

    async def _read(self, sql: str, before: int, room: Room) -> Rows:
        collector, found, error = Collector(room), Rows((), [], ""), None
        while (result := await self._next()) is not None:
            match result.status:
                case pq.ExecStatus.SINGLE_TUPLE:
                    await collector.add(result)
                case pq.ExecStatus.TUPLES_OK | pq.ExecStatus.COMMAND_OK:
                    found = await collector.end(result)
                case pq.ExecStatus.EMPTY_QUERY:
                    error = SqlError("bad_statement", "there is no statement")
                case status if status in _COPIES:
                    self.close()
                    raise SqlError("refused", "COPY from or to a client is not offered")
                case _:
                    error = from_result(result, sql, before)
        if error is not None:
            raise error
        return found

    async def _next(self) -> PGresult | None:
        """The next row or other result, None after the last one."""
        looked = 0
        while self._pgconn.is_busy():
            await anyio.wait_readable(self._pgconn.socket)
            # The first time libpq reads no more than it has room for, and that is not all.
            self._arrived += count_arrived(self._pgconn.socket) if looked else 0
            looked += 1
            self._pgconn.consume_input()
            self._take_notifications()
            if self._arrived > self.limits.value_bytes:
                # The rest of the row would have to be read before anything else.
                self.close()
                raise row_too_large(self.limits.value_bytes)
        self._arrived = 0
        result = self._pgconn.get_result()
        self._at_work = result is not None
        return result

    def _take_notifications(self) -> None:
        while (heard := self._pgconn.notifies()) is not None:
            self.notifications.append(heard)

    async def _stop(self) -> bool:
        """Has PostgreSQL stop what is under way; closes the connection where that does not end soon. Whether the
        request to do so was heard."""
        is_heard = False
        with anyio.move_on_after(_GRACE, shield=True):
            try:
                await _cancel(self._pgconn)
                is_heard = True
                while await self._next() is not None:
                    """Nobody wants it any more."""
            except (Error, SqlError):
                self.close()
        if self._at_work:
            self.close()
        return is_heard


async def open_link(target: Target, limits: Limits) -> Link:
    """A new connection. Raises OpeningError and other SqlErrors."""
    link = Link(await connect(target), limits, is_shared=target.is_shared)
    with ExitStack() as unless_ready:
        unless_ready.callback(link.close)
        if link.version < _OLDEST:
            raise OpeningError(f"it is PostgreSQL {link.version // 10_000}, and this server needs 13 or newer")
        await link.learn(target.settings)
        unless_ready.pop_all()
        return link


async def _cancel(pgconn: PGconn) -> None:
    """Sends the request to cancel, by a connection of its own, and waits until it was heard."""
    request = pgconn.cancel_conn()
    try:
        request.start()
        while (status := request.poll()) != pq.PollingStatus.OK:
            if status == pq.PollingStatus.FAILED:
                raise OperationalError("the request to cancel failed")
            wait = anyio.wait_readable if status == pq.PollingStatus.READING else anyio.wait_writable
            await wait(request.socket)
    finally:
        request.finish()

"""One connection to PostgreSQL, which runs one statement at a time. A statement in progress can be stopped.

Clients' statements use the extended query protocol, which accepts a single statement, and takes its parameters
separately. Rows are read one by one, so that a result that is too large is detected while it arrives, and takes no
more memory than allowed. There is one exception: a single row may arrive faster than its size can be checked, for
example by TCP from the same machine. libpq then reads the row completely, up to PostgreSQL's own limit of a gigabyte,
and it is refused afterwards.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import anyio
from psycopg import Error, OperationalError, pq
from psycopg.pq.abc import PGconn, PGresult

from servers.common.sql.errors import SqlError
from shared.text import join_lines

from ..errors import from_result, make_connection_error
from .answers import JSON_OIDS, Cell, ListText, decode, encode, encode_text
from .connecting import OpeningError, connect
from .deadline import Deadline, Limits
from .rows import Collector, Column, OnRows, Rows, RowSink, row_too_large
from .socket_backlog import count_arrived
from .target import Target
from .transactions import (
    DISCARD_SESSION,
    SERVER_PROCESS,
    TransactionStart,
    format_end,
    format_release,
)

Ask = Callable[..., Awaitable[list[tuple[Any, ...]]]]
"""Runs a query that this program itself makes, given its SQL and its parameters."""

__all__ = ["Ask", "Column", "Link", "Rows", "open_link"]

_MIN_VERSION = 130_000
"""The oldest supported version, PostgreSQL 13, as libpq writes it."""
_CANCEL_SECONDS = 2.0
"""Seconds to wait for the end of a cancelled statement before the connection is closed."""
_ROLLBACK_SECONDS = 5.0
"""Maximum number of seconds for a rollback."""
_MAX_NOTIFICATIONS = 10_000
"""Maximum number of notifications that wait to be read."""
_MAX_NOTICES, _MAX_NOTICE_LENGTH = 20, 500
"""Maximum number of notices of a statement that are kept, and of characters of each."""
_NO_ROWS = RowSink(0, 0)
_COPY_STATUSES = (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH)


class Link:
    """One connection, for one caller at a time. Close it at the end.

    It may lead to a pooler instead of PostgreSQL itself (`is_pooled`). Such a pooler may give the PostgreSQL process
    of the connection to other clients between transactions (`is_shared`).
    """

    def __init__(self, pgconn: PGconn, limits: Limits, *, is_shared: bool = False) -> None:
        self.limits = limits
        self.is_shared = is_shared
        self.backend = pgconn.backend_pid
        """The id of the PostgreSQL process that serves the connection; if `is_shared`, of the first that did so."""
        self.notifications: deque[pq.PGnotify] = deque(maxlen=_MAX_NOTIFICATIONS)
        """Notifications received by LISTEN; the oldest are dropped."""
        self.notices: list[str] = []
        """The first NOTICE messages of PostgreSQL since a caller cleared this list."""
        self._pgconn = pgconn
        self._pgconn.notice_handler = self._store_notice
        self._transaction_start = TransactionStart(limits, {}, checks_client=False)
        self._writes = False
        """True if the current transaction, or the last one, may change the database."""
        self._is_working = False
        self._row_bytes = 0
        """Bytes received of the current row."""

    def _store_notice(self, result: PGresult) -> None:
        if len(self.notices) < _MAX_NOTICES:
            message = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode("utf-8", "replace")
            self.notices.append(join_lines(message[:_MAX_NOTICE_LENGTH]))
        elif len(self.notices) == _MAX_NOTICES:
            self.notices.append("there were more")

    @property
    def is_broken(self) -> bool:
        """True if the connection can no longer be used."""
        return self._pgconn.status != pq.ConnStatus.OK

    @property
    def in_transaction(self) -> bool:
        """True if a transaction has begun and not ended, even if it failed."""
        return self._pgconn.transaction_status != pq.TransactionStatus.IDLE

    @property
    def version(self) -> int:
        """The version of PostgreSQL; 150004 is 15.4."""
        return self._pgconn.server_version

    @property
    def is_pooled(self) -> bool:
        """True if the connection leads to a pooler. When a connection is made, PostgreSQL reports the id of the
        process that serves it, while a pooler reports a made-up number."""
        return self._pgconn.backend_pid != self.backend

    async def prepare(self, settings: Mapping[str, str]) -> None:
        """Determine the process that serves the connection, and store the operator's `settings` for each transaction.
        Raises SqlError."""
        deadline = Deadline(self.limits.timeout)
        ((self.backend, checks_client),) = await self.ask(SERVER_PROCESS, deadline=deadline)
        self._transaction_start = TransactionStart(self.limits, settings, checks_client=checks_client)

    async def run(
        self,
        sql: str,
        parameters: Sequence[Cell] = (),
        *,
        deadline: Deadline,
        prefix: str = "",
        max_bytes: int | None = None,
        on_rows: OnRows | None = None,
    ) -> Rows:
        """Run one statement, sent after the text `prefix`. Positions in errors don't count the prefix.

        Return at least one row, and further rows up to `max_bytes` bytes of memory; the rest is dropped. Without
        `max_bytes`, stop the statement if its rows take more than `limits.value_bytes`. With `on_rows`, pass rows to
        it while they arrive instead of returning them. A list is sent as JSON for a parameter of a JSON type. Raises
        SqlError, with code `timeout` at the `deadline`. The statement is also stopped if the caller is cancelled.
        """
        text = encode_text(prefix + sql, "bad_statement")
        if any(value is not None and b"\0" in value for value in parameters):
            raise SqlError(
                "bad_parameters", "a value contains the character U+0000, which PostgreSQL does not allow in text"
            )
        value_bytes = self.limits.value_bytes
        sink = RowSink(value_bytes if max_bytes is None else max_bytes, value_bytes, max_bytes is not None, on_rows)
        if any(isinstance(value, ListText) for value in parameters):
            types = (await self._describe(sql, prefix, deadline)).parameter_types
            # If the numbers differ, PostgreSQL reports the error when the statement is run.
            if len(types) == len(parameters):
                parameters = [
                    value.json if isinstance(value, ListText) and oid in JSON_OIDS else value
                    for value, oid in zip(parameters, types, strict=True)
                ]
        async with self._guard(deadline):
            self._pgconn.send_query_params(text, parameters or None)
            # libpq accepts this call only directly after the query was sent.
            self._pgconn.set_single_row_mode()
            await self._send()
            return await self._read(sql, len(prefix), sink)

    async def copy_in(self, sql: str, chunks: AsyncIterator[bytes], *, deadline: Deadline) -> None:
        """Run a COPY … FROM STDIN statement of this program, with the `chunks` as input. Each chunk contains complete
        rows. Raises SqlError, and errors raised by `chunks`."""
        async with self._guard(deadline):
            self._pgconn.send_query_params(encode_text(sql, "bad_statement"), None)
            await self._send()
            result = await self._fetch_result()
            if result is not None and result.status == pq.ExecStatus.COPY_IN:
                await self._send_rows(chunks)
            elif result is not None:
                while await self._fetch_result() is not None:
                    pass  # ignore the results after the error
                raise from_result(result, sql)
            await self._read(sql, 0, _NO_ROWS)

    async def describe(self, sql: str, *, deadline: Deadline) -> tuple[Column, ...]:
        """Return the columns of a statement's rows, without running it. Raises SqlError for a statement that is not
        valid, or that the role may not run."""
        return (await self._describe(sql, "", deadline)).columns

    async def _describe(self, sql: str, prefix: str, deadline: Deadline) -> Rows:
        text = encode_text(prefix + sql, "bad_statement")
        async with self._guard(deadline):
            self._pgconn.send_prepare(b"", text)
            await self._send()
            await self._read(sql, len(prefix), _NO_ROWS)
        async with self._guard(deadline):
            self._pgconn.send_describe_prepared(b"")
            await self._send()
            return await self._read(sql, len(prefix), _NO_ROWS)

    async def ask(self, sql: str, *parameters: object, deadline: Deadline) -> list[tuple[Any, ...]]:
        """Return the rows of a query that this program itself makes. Their values are str, int, float, bool, None, or
        lists of these.

        Raises SqlError.
        """
        result = await self.run(sql, [encode(value) for value in parameters], deadline=deadline)
        oids = [column.oid for column in result.columns]
        return [tuple(map(decode, row, oids)) for row in result.rows]

    @asynccontextmanager
    async def transaction(self, deadline: Deadline, mode: str = "READ ONLY") -> AsyncIterator[None]:
        """Begin a transaction that is rolled back at the end of the block, unless it has ended. Raises SqlError."""
        try:
            await self.begin(deadline, mode)
            yield
        finally:
            await self.roll_back()

    async def begin(self, deadline: Deadline, mode: str = "READ ONLY", *, probe_timeout: float | None = None) -> None:
        """Begin a transaction with all settings that statements need. Each statement may take as long as the time
        limit of `deadline`.

        Raises SqlError, with code `unavailable` if the transaction has not begun after `probe_timeout` seconds; the
        connection is then closed.
        """
        self._writes = mode.endswith("WRITE")
        timeout = deadline.left if probe_timeout is None else min(probe_timeout, deadline.left)
        async with self._guard(Deadline(timeout), cancels=False):
            await self._send_simple(self._transaction_start.format(mode, deadline.timeout))

    async def commit(self, deadline: Deadline) -> None:
        """Remove everything that the statements left in the session, and commit the transaction. Raises SqlError."""
        await self._run_simple(f"{DISCARD_SESSION}; {format_release()}", deadline)
        with deadline.mark_committing():
            await self._run_simple("COMMIT", deadline)

    async def roll_back(self) -> None:
        """Roll back the transaction, if there is one, and undo its effects on the session. Close the connection if
        that fails."""
        with anyio.CancelScope(shield=True):
            try:
                deadline = Deadline(_ROLLBACK_SECONDS)
                if self.in_transaction:
                    await self._run_simple(format_end(writes=self._writes), deadline)
                if self._writes and not self.is_shared:
                    # A function may have changed any setting of the session. On a shared connection, DISCARD ALL
                    # could reach another session; there, `Session.commit` refuses such changes.
                    await self._run_simple("DISCARD ALL", deadline)
                self._writes = False
            except SqlError:
                self.close()

    def close(self) -> None:
        """Close the connection, even during a statement."""
        self._is_working = False
        self._pgconn.finish()

    def detect_close(self) -> None:
        """Close this side if the other side has closed the connection. Call it between statements."""
        try:
            self._pgconn.consume_input()
            self._take_notifications()
        except OperationalError:
            self.close()

    async def wait_for_notifications(self) -> None:
        """Wait for notifications between statements. Raises SqlError if the connection breaks."""
        while not self.notifications and not self.is_broken:
            await anyio.wait_readable(self._pgconn.socket)
            self.detect_close()
        if self.is_broken:
            raise make_connection_error()

    @asynccontextmanager
    async def _guard(self, deadline: Deadline, *, cancels: bool = True) -> AsyncIterator[None]:
        """Ensure that no statement is in progress after the block, which sends one. At the deadline or after an
        exception, cancel the statement. If that fails, or without `cancels`, close the connection. Raises
        SqlError."""
        try:
            with anyio.fail_after(deadline.left):
                yield
        except TimeoutError:
            is_responding = cancels and await self._stop()
            raise deadline.error(is_responding=is_responding) from None
        except OperationalError:
            if not self.is_broken:
                raise
            raise make_connection_error() from None
        finally:
            if self._is_working and cancels:
                await self._stop()
            elif self._is_working:
                self.close()

    async def _run_simple(self, text: str, deadline: Deadline) -> None:
        """Run statements of this program as one message of the simple query protocol, which poolers do not split.
        Raises SqlError."""
        async with self._guard(deadline):
            await self._send_simple(text)

    async def _send_simple(self, text: str) -> None:
        self._pgconn.send_query(text.encode())
        await self._send()
        await self._read(text, 0, _NO_ROWS)

    async def _send(self) -> None:
        self._is_working = True
        self._row_bytes = 0
        await self._flush()

    async def _flush(self) -> None:
        while self._pgconn.flush():
            await anyio.wait_writable(self._pgconn.socket)

    async def _send_rows(self, chunks: AsyncIterator[bytes]) -> None:
        reason: bytes | None = b"stopped"
        try:
            async for chunk in chunks:
                # `put_copy_data` returns False if libpq's buffers are full.
                while not self._pgconn.put_copy_data(chunk):
                    await anyio.wait_writable(self._pgconn.socket)
                await self._flush()
                if count_arrived(self._pgconn.socket):
                    break  # PostgreSQL has sent an error, which libpq returns only after the end of the rows.
            reason = None
        finally:
            await self._end_copy(reason)

    async def _end_copy(self, reason: bytes | None) -> None:
        """End the input of COPY, so that other messages can be sent. `reason` says why rows are missing; None if the
        input is complete."""
        with ExitStack() as unless_ended:
            unless_ended.callback(self.close)
            with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
                if reason is not None:
                    # PostgreSQL may be waiting for a lock instead of reading rows.
                    await _cancel(self._pgconn)
                while not self._pgconn.put_copy_end(reason):
                    await anyio.wait_writable(self._pgconn.socket)
                await self._flush()
                unless_ended.pop_all()

    async def _read(self, sql: str, prefix_length: int, sink: RowSink) -> Rows:
        collector, rows, error = Collector(sink), Rows((), [], ""), None
        while (result := await self._fetch_result()) is not None:
            match result.status:
                case pq.ExecStatus.SINGLE_TUPLE:
                    await collector.add(result)
                case pq.ExecStatus.TUPLES_OK | pq.ExecStatus.COMMAND_OK:
                    rows = await collector.end(result)
                case pq.ExecStatus.EMPTY_QUERY:
                    error = SqlError("bad_statement", "there is no statement")
                case status if status in _COPY_STATUSES:
                    self.close()
                    raise SqlError("refused", "COPY from or to a client is not supported")
                case _:
                    error = from_result(result, sql, prefix_length)
        if error is not None:
            raise error
        return rows

    async def _fetch_result(self) -> PGresult | None:
        """Return the next result, which may be a single row; None after the last one."""
        reads = 0
        while self._pgconn.is_busy():
            await anyio.wait_readable(self._pgconn.socket)
            # The bytes that have arrived before the first read are not counted, since they may belong to several
            # rows. libpq reads no more of them than fits its buffer.
            self._row_bytes += count_arrived(self._pgconn.socket) if reads else 0
            reads += 1
            self._pgconn.consume_input()
            self._take_notifications()
            if self._row_bytes > self.limits.value_bytes:
                # Close the connection: on it, the rest of the row would have to be read before anything else.
                self.close()
                raise row_too_large(self.limits.value_bytes)
        self._row_bytes = 0
        result = self._pgconn.get_result()
        self._is_working = result is not None
        return result

    def _take_notifications(self) -> None:
        while (notification := self._pgconn.notifies()) is not None:
            self.notifications.append(notification)

    async def _stop(self) -> bool:
        """Cancel the current statement, and close the connection if it does not end soon. Return True if PostgreSQL
        received the cancel request."""
        is_responding = False
        with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
            try:
                await _cancel(self._pgconn)
                is_responding = True
                while await self._fetch_result() is not None:
                    pass  # discard the remaining results
            except (Error, SqlError):
                self.close()
        if self._is_working:
            self.close()
        return is_responding


async def open_link(target: Target, limits: Limits) -> Link:
    """Open a new connection. Raises OpeningError and other SqlErrors."""
    link = Link(await connect(target), limits, is_shared=target.is_shared)
    with ExitStack() as unless_ready:
        unless_ready.callback(link.close)
        if link.version < _MIN_VERSION:
            raise OpeningError(f"it is PostgreSQL {link.version // 10_000}, but this server needs 13 or newer")
        await link.prepare(target.settings)
        unless_ready.pop_all()
        return link


async def _cancel(pgconn: PGconn) -> None:
    """Send the cancel request over a separate connection, and wait until it was received."""
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

"""One connection, which runs one statement at a time and can be stopped.

Clients' statements use the extended query protocol, which accepts one statement at a time and receives its parameters
separately. Rows are read one by one, so that a result that is too large is detected while it arrives, and takes no
more memory than allowed. There is one exception: a single row may arrive faster than its size can be checked, for
example by TCP from the same machine. libpq reads it completely, up to PostgreSQL's own limit of a gigabyte, and it is
refused afterwards.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import anyio
from psycopg import Error, OperationalError, pq
from psycopg.pq.abc import PGconn, PGresult

from servers.common.sql.errors import SqlError
from servers.postgres.engine.answers import JSON_OIDS, Cell, ListText, decode, encode, encode_text
from servers.postgres.engine.connecting import OpeningError, connect
from servers.postgres.engine.deadline import Deadline, Limits
from servers.postgres.engine.rows import Collector, Column, OnRows, Rows, RowSink, row_too_large
from servers.postgres.engine.socket_backlog import count_arrived
from servers.postgres.engine.target import Target
from servers.postgres.engine.transactions import (
    DISCARD_SESSION,
    SERVER_PROCESS,
    TransactionStart,
    format_end,
    format_release,
)
from servers.postgres.errors import from_result, make_connection_error
from shared.text import join_lines

Ask = Callable[..., Awaitable[list[tuple[Any, ...]]]]
"""Runs one of the server's own queries, given its SQL and its parameters."""

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

    If `is_shared`, a pooler gives its PostgreSQL process to other clients between its transactions.
    """

    def __init__(self, pgconn: PGconn, limits: Limits, *, is_shared: bool = False) -> None:
        self.limits = limits
        self.is_shared = is_shared
        self.backend = pgconn.backend_pid
        """The id of the PostgreSQL process that serves it; if it is shared, of the first one that did."""
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
        """True if there is a pooler in between: PostgreSQL reports the id of its process when a connection is made,
        while a pooler makes up a number."""
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

        At least one row is kept, and further rows up to `max_bytes` bytes of memory; the rest is dropped. Without
        `max_bytes`, the statement is stopped if its rows take more than `limits.value_bytes`. With `on_rows`, rows
        are not kept but passed to it while they arrive. A list is sent as JSON for a parameter of a JSON type. Raises
        SqlError, with code `timeout` at the `deadline`. The statement is also stopped if the caller is cancelled.
        """
        text = encode_text(prefix + sql, "bad_statement")
        if any(value is not None and b"\0" in value for value in parameters):
            raise SqlError(
                "bad_parameters", "a value contains the character U+0000, which PostgreSQL does not allow in text"
            )
        max_row_bytes = self.limits.value_bytes
        sink = RowSink(
            max_row_bytes if max_bytes is None else max_bytes, max_row_bytes, max_bytes is not None, on_rows
        )
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
        """Run one of the server's own COPY … FROM STDIN statements, with the `chunks` as input. Each of them contains
        complete rows. Raises SqlError, and errors raised by `chunks`."""
        async with self._guard(deadline):
            self._pgconn.send_query_params(encode_text(sql, "bad_statement"), None)
            await self._send()
            result = await self._fetch_result()
            if result is not None and result.status == pq.ExecStatus.COPY_IN:
                await self._send_rows(chunks)
            elif result is not None:
                while await self._fetch_result() is not None:
                    """Results after the error are ignored."""
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
        """Return the rows of one of the server's own queries, of str, int, float, bool, None, or lists of these.

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
        """Roll back the transaction, if there is one, and remove everything that it left in the session. Close the
        connection if that fails."""
        with anyio.CancelScope(shield=True):
            try:
                deadline = Deadline(_ROLLBACK_SECONDS)
                if self.in_transaction:
                    await self._run_simple(format_end(writes=self._writes), deadline)
                if self._writes and not self.is_shared:
                    # A function may have changed any setting. On a shared connection, `Session.commit` refuses that.
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
        """Ensure that the statement in the block has ended after it. At the deadline or after an exception, the
        statement is cancelled; if that fails, or unless `cancels`, the connection is closed. Raises SqlError."""
        try:
            with anyio.fail_after(deadline.left):
                yield
        except TimeoutError:
            is_responding = cancels and await self._stop()
            raise deadline.reason(is_responding=is_responding) from None
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
        """Run some of the server's own statements as one message of the simple query protocol, which poolers do not
        split. Raises SqlError."""
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
                # False if libpq's buffers are full.
                while not self._pgconn.put_copy_data(chunk):
                    await anyio.wait_writable(self._pgconn.socket)
                await self._flush()
                if count_arrived(self._pgconn.socket):
                    break  # PostgreSQL has sent an error, which libpq returns only after the end of the rows.
            reason = None
        finally:
            await self._end_copy(reason)

    async def _end_copy(self, reason: bytes | None) -> None:
        """End the rows, so that other messages can be sent. `reason` says why they are incomplete; None if not."""
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
            # Not counted before the first read, in which libpq reads no more than fits its buffer: the bytes that
            # have arrived may belong to several rows.
            self._row_bytes += count_arrived(self._pgconn.socket) if reads else 0
            reads += 1
            self._pgconn.consume_input()
            self._take_notifications()
            if self._row_bytes > self.limits.value_bytes:
                # Otherwise the rest of the row would have to be read before anything else.
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
                    """The remaining results are discarded."""
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

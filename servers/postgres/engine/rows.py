"""Collects the rows of a statement, which are received one by one."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from psycopg.pq.abc import PGresult

from servers.common.sql.errors import SqlError

from .answers import Cell

_CELL_OVERHEAD_BYTES = 40
"""Memory for a value in addition to its size, in bytes."""
_BATCH_BYTES = 1_000_000
"""Size of the rows that are passed on together, in bytes of memory."""


class Column(NamedTuple):
    """A column of a result."""

    name: str
    oid: int
    """The oid of the column's type."""
    modifier: int
    """The modifier of the column's type, such as the length of a varchar; -1 if the type has none."""
    table: int
    """The oid of the column's table; 0 for an expression."""
    number: int
    """The number of the column in the table; 0 for an expression."""


class Rows(NamedTuple):
    """The result of a statement."""

    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]]
    tag: str
    """The command tag, such as "SELECT 3"."""
    is_truncated: bool = False
    """True if further rows were dropped because they did not fit."""
    parameter_types: tuple[int, ...] = ()
    """The oids of the types of a described statement's parameters."""


OnRows = Callable[[list[tuple[Cell, ...]]], Awaitable[None]]
"""Receives the next rows."""


class RowSink(NamedTuple):
    """What happens to the rows of a statement, and how much memory they may take."""

    bytes: int
    """Maximum memory for all rows."""
    row_bytes: int
    """Maximum size of one row."""
    truncates: bool = False
    """True if rows that don't fit are dropped instead of raising an error."""
    on_rows: OnRows | None = None
    """Receives rows while they arrive, if set; `Rows` then contains none."""


class Collector:
    """Collects the rows of one statement while they arrive."""

    def __init__(self, sink: RowSink) -> None:
        self._sink = sink
        self._bytes_left = sink.bytes
        self._rows: list[tuple[Cell, ...]] = []
        self._is_truncated = False

    async def add(self, result: PGresult) -> None:
        """Add the row of a single-row result. Raises SqlError with code `too_large` if the row is too large, or does
        not fit and may not be dropped."""
        row = tuple([result.get_value(0, index) for index in range(result.nfields)])
        size = sum([len(value) for value in row if value])
        if size > self._sink.row_bytes:
            raise row_too_large(self._sink.row_bytes)
        self._bytes_left -= size + _CELL_OVERHEAD_BYTES * len(row)
        if self._sink.on_rows is not None:
            self._rows.append(row)
            if self._bytes_left < self._sink.bytes - _BATCH_BYTES:
                await self._pass_on(self._sink.on_rows)
        elif self._bytes_left >= 0 or not self._rows:
            self._rows.append(row)
        elif self._sink.truncates:
            self._is_truncated = True
        else:
            reason = f"the rows of one statement take more than {self._sink.bytes:,} bytes"
            raise SqlError("too_large", reason, "Select fewer columns or rows.")

    async def end(self, result: PGresult) -> Rows:
        """Return the rows and properties of the statement, given its final `result`."""
        if self._sink.on_rows is not None and self._rows:
            await self._pass_on(self._sink.on_rows)
        tag = (result.command_status or b"").decode()
        types = tuple(result.param_type(index) for index in range(result.nparams))
        return Rows(find_columns(result), self._rows, tag, self._is_truncated, types)

    async def _pass_on(self, on_rows: OnRows) -> None:
        await on_rows(self._rows)
        self._rows, self._bytes_left = [], self._sink.bytes


def row_too_large(limit: int) -> SqlError:
    """Return the error for a row of more than `limit` bytes."""
    suggestion = "Select fewer columns, or parts of long values."
    return SqlError("too_large", f"one row has more than {limit:,} bytes", suggestion)


def find_columns(result: PGresult) -> tuple[Column, ...]:
    """Return the columns of a result."""
    return tuple(
        Column(
            (result.fname(index) or b"").decode("utf-8", "replace"),
            result.ftype(index),
            result.fmod(index),
            result.ftable(index),
            result.ftablecol(index),
        )
        for index in range(result.nfields)
    )

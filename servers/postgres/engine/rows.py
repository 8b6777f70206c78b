"""What a statement gives, while it arrives row by row."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from psycopg.pq.abc import PGresult

from servers.common.sql.errors import SqlError
from servers.postgres.engine.answers import Cell

_CELL = 40
"""Bytes of memory for a value besides its own."""
_BATCH = 1_000_000
"""Bytes of memory for rows that are handed on together."""


class Column(NamedTuple):
    """A column of a result."""

    name: str
    oid: int
    """Of its type."""
    modifier: int
    """Of its type, as the length of a varchar; -1 where it has none."""
    table: int
    """The oid of the table that it is a column of; 0 for an expression."""
    number: int
    """Which column of the table; 0 for an expression."""


class Rows(NamedTuple):
    """What a statement gave."""

    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]]
    tag: str
    """What was done, as "SELECT 3"."""
    cut: bool = False
    """Whether there were more rows, for which there was no room: they were not kept."""


Take = Callable[[list[tuple[Cell, ...]]], Awaitable[None]]
"""Takes the next rows."""


class Room(NamedTuple):
    """Where rows go, and how much memory they may take."""

    bytes: int
    row_bytes: int
    """What one row may have."""
    is_cut: bool = False
    """Whether those without room are left out, instead of an error."""
    take: Take | None = None
    """Who takes them while they arrive, so that none are kept."""


class Collector:
    """The rows that have arrived."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._left = room.bytes
        self._rows: list[tuple[Cell, ...]] = []
        self._cut = False

    async def add(self, result: PGresult) -> None:
        """Adds the row of a result. Raises SqlError `too_large` where there is no room."""
        row = tuple([result.get_value(0, index) for index in range(result.nfields)])
        size = sum([len(value) for value in row if value])
        if size > self._room.row_bytes:
            raise row_too_large(self._room.row_bytes)
        self._left -= size + _CELL * len(row)
        if self._room.take is not None:
            self._rows.append(row)
            if self._left < self._room.bytes - _BATCH:
                await self._hand_on(self._room.take)
        elif self._left >= 0 or not self._rows:
            self._rows.append(row)
        elif self._room.is_cut:
            self._cut = True
        else:
            reason = f"the rows of one statement take more than {self._room.bytes:,} bytes"
            raise SqlError("too_large", reason, "Select fewer columns or rows.")

    async def end(self, result: PGresult) -> Rows:
        """All of it, with the result that came last."""
        if self._room.take is not None and self._rows:
            await self._hand_on(self._room.take)
        return Rows(find_columns(result), self._rows, (result.command_status or b"").decode(), self._cut)

    async def _hand_on(self, take: Take) -> None:
        await take(self._rows)
        self._rows, self._left = [], self._room.bytes


def row_too_large(most: int) -> SqlError:
    """The error for a row of more than `most` bytes."""
    suggestion = "Select fewer columns, or a part of what is long."
    return SqlError("too_large", f"one row has more than {most:,} bytes", suggestion)


def find_columns(result: PGresult) -> tuple[Column, ...]:
    """The columns of a result."""
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

"""Finds the types of a result's columns, and the types with which these were declared in their tables."""

from collections.abc import Sequence
from typing import NamedTuple

from ..catalog import Types
from ..engine.link import Ask, Column
from ..values import Type

_MAX_CACHED = 10_000
"""Maximum number of columns whose types are cached."""
_QUERY = """
    SELECT w.place - 1, pg_catalog.format_type(a.atttypid, a.atttypmod)
    FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.int2[]))
        WITH ORDINALITY AS w(relation, number, place)
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = w.relation AND a.attnum = w.number"""


class ColumnDescriptions(NamedTuple):
    """The columns of a result."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    declared: tuple[str | None, ...]
    """The type with which a table's column was declared, for example with a length; None for an expression."""


class ColumnTypes:
    """The types of one database's columns, each read once."""

    def __init__(self) -> None:
        self._types = Types()
        self._declared: dict[tuple[int, int, int, int], str] = {}
        """The declared types by table, column number, oid of the type and modifier of the type. So a column whose
        type was changed gets a new entry."""

    async def describe(self, columns: Sequence[Column], ask: Ask) -> ColumnDescriptions:
        """Describe the columns, and look up those that are not cached. Raises SqlError."""
        types = await self._types.read([column.oid for column in columns], ask)
        keys = [(column.table, column.number, column.oid, column.modifier) for column in columns]
        missing = [key for key in dict.fromkeys(keys) if key[0] and key not in self._declared]
        if missing:
            if len(self._declared) > _MAX_CACHED:
                self._declared.clear()
            rows = await ask(_QUERY, [key[0] for key in missing], [key[1] for key in missing])
            self._declared |= {missing[position]: declared for position, declared in rows}
        declared = tuple(self._declared.get(key) for key in keys)
        return ColumnDescriptions(tuple(column.name for column in columns), tuple(types), declared)

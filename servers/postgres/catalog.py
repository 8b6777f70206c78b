"""The types of one database, each read once from its catalog."""

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from servers.postgres.engine.link import Ask, Rows
from servers.postgres.values import Type

Run = Callable[..., Awaitable[Rows]]
"""Runs one statement with its parameters, like `Link.run`."""

_KINDS = {
    16: ("boolean", "bool"),
    17: ("bytea", "bytea"),
    20: ("bigint", "int8"),
    21: ("smallint", "int4"),
    23: ("integer", "int4"),
    26: ("oid", "int4"),
    700: ("real", "float4"),
    701: ("double precision", "float8"),
    1700: ("numeric", "numeric"),
}
"""By oid, which is the same everywhere for these types: the name, and the kind of the values."""
_TEXTS = {
    18: '"char"',
    19: "name",
    25: "text",
    114: "json",
    1042: "character",
    1043: "character varying",
    1082: "date",
    1083: "time without time zone",
    1114: "timestamp without time zone",
    1184: "timestamp with time zone",
    1186: "interval",
    2950: "uuid",
    3802: "jsonb",
}
"""The names of further types that most queries use, by oid."""
_MAX_ROUNDS = 20
"""Maximum number of rounds of queries: an array leads to its element type, and that to the base type of a domain."""
_QUERY = """
    SELECT t.oid, pg_catalog.format_type(t.oid, NULL), t.typbasetype, t.typdelim::pg_catalog.text,
        CASE WHEN t.typinput = 'pg_catalog.array_in'::pg_catalog.regproc THEN t.typelem ELSE 0 END
    FROM pg_catalog.pg_type AS t WHERE t.oid = ANY ($1::pg_catalog.oid[])"""


class _CatalogType(NamedTuple):
    """A type as in the catalog."""

    name: str
    base: int
    """The base type of a domain; 0 for other types."""
    delimiter: str
    element: int
    """The element type of an array; 0 for other types."""


class Types:
    """The types of one database that have been looked up so far."""

    def __init__(self) -> None:
        self._catalog_types: dict[int, _CatalogType] = {}
        self._known = {oid: Type(name, kind) for oid, (name, kind) in _KINDS.items()}
        self._known |= {oid: Type(name) for oid, name in _TEXTS.items()}

    async def read(self, oids: Iterable[int], ask: Ask) -> list[Type]:
        """Return the types with these oids, and look up those that are not cached."""
        requested = list(oids)
        missing = {oid for oid in requested if oid not in self._known}
        for _ in range(_MAX_ROUNDS):
            if not missing:
                break
            for oid, *facts in await ask(_QUERY, sorted(missing)):
                self._catalog_types[oid] = _CatalogType(*facts)
            looked_at = [self._catalog_types[oid] for oid in missing if oid in self._catalog_types]
            parts = {part for entry in looked_at for part in (entry.base, entry.element) if part}
            missing = parts - self._known.keys() - self._catalog_types.keys()
        return [self._make(oid) for oid in requested]

    def _make(self, oid: int) -> Type:
        cached = self._known.get(oid)
        if cached is not None:
            return cached
        entry = self._catalog_types.get(oid)
        if entry is None:
            # A type that has been dropped; PostgreSQL writes the same.
            return Type("???")
        type_ = Type(entry.name)
        if entry.base:
            type_ = self._make(entry.base)._replace(name=entry.name)
        elif entry.element and entry.delimiter == ",":
            type_ = Type(entry.name, "array", self._make(entry.element))
        self._known[oid] = type_
        return type_


class Session(NamedTuple):
    """One connection in a transaction, for functions that need tables' rows in addition to the catalog."""

    ask: Ask
    run: Run
    types: Types

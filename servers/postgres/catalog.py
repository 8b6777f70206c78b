"""The data types of one database. Each is read once from the system catalog."""

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from .engine.link import Ask, Rows
from .values import Type

Run = Callable[..., Awaitable[Rows]]
"""Runs one statement with its parameters, like `Link.run`."""

_JSON_TYPES = {
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
"""The name and the kind (see `Type.kind`) of built-in types, by oid. These oids are the same in all databases."""
_TEXT_TYPES = {
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
"""The names of further built-in types that most queries use, by oid. Their values stay text."""
_MAX_ROUNDS = 20
"""Maximum number of queries for one lookup. Each looks up the types to which the last result refers: the element
types of arrays, and the base types of domains."""
_TYPES_QUERY = """
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
    """A cache of the types of one database."""

    def __init__(self) -> None:
        self._catalog_types: dict[int, _CatalogType] = {}
        self._known = {oid: Type(name, kind) for oid, (name, kind) in _JSON_TYPES.items()}
        self._known |= {oid: Type(name) for oid, name in _TEXT_TYPES.items()}

    async def read(self, oids: Iterable[int], ask: Ask) -> list[Type]:
        """Return the types with these oids, and look up those that are not cached."""
        requested = list(oids)
        missing = {oid for oid in requested if oid not in self._known}
        for _ in range(_MAX_ROUNDS):
            if not missing:
                break
            for oid, *properties in await ask(_TYPES_QUERY, sorted(missing)):
                self._catalog_types[oid] = _CatalogType(*properties)
            entries = [self._catalog_types[oid] for oid in missing if oid in self._catalog_types]
            referenced = {part for entry in entries for part in (entry.base, entry.element) if part}
            missing = referenced - self._known.keys() - self._catalog_types.keys()
        return [self._make_type(oid) for oid in requested]

    def _make_type(self, oid: int) -> Type:
        cached = self._known.get(oid)
        if cached is not None:
            return cached
        entry = self._catalog_types.get(oid)
        if entry is None:
            # The type has been dropped. PostgreSQL's format_type returns the same text.
            return Type("???")
        type_ = Type(entry.name)
        if entry.base:
            type_ = self._make_type(entry.base)._replace(name=entry.name)
        elif entry.element and entry.delimiter == ",":
            type_ = Type(entry.name, "array", self._make_type(entry.element))
        self._known[oid] = type_
        return type_


class Session(NamedTuple):
    """A connection in a transaction, for functions that read rows of tables as well as the catalog."""

    ask: Ask
    run: Run
    types: Types

"""What the catalog of one database says of types, read once for each."""

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from servers.postgres.engine.link import Ask, Rows
from servers.postgres.values import Type

Run = Callable[..., Awaitable[Rows]]
"""Runs one statement with its parameters, as `Link.run` does."""

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
"""By oid, which for these is the same everywhere: the name and what the values are."""
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
"""The same for those that most queries have besides."""
_ROUNDS = 20
"""Of questions: for an array, its elements, and the domains that these are of."""
_QUESTION = """
    SELECT t.oid, pg_catalog.format_type(t.oid, NULL), t.typbasetype, t.typdelim::pg_catalog.text,
        CASE WHEN t.typinput = 'pg_catalog.array_in'::pg_catalog.regproc THEN t.typelem ELSE 0 END
    FROM pg_catalog.pg_type AS t WHERE t.oid = ANY ($1::pg_catalog.oid[])"""


class _Found(NamedTuple):
    """A type as the catalog has it."""

    name: str
    base: int
    """What a domain is of; 0 for others."""
    delimiter: str
    element: int
    """0 for what is no array."""


class Types:
    """The types of one database that were seen so far."""

    def __init__(self) -> None:
        self._found: dict[int, _Found] = {}
        self._known = {oid: Type(name, kind) for oid, (name, kind) in _KINDS.items()}
        self._known |= {oid: Type(name) for oid, name in _TEXTS.items()}

    async def read(self, oids: Iterable[int], ask: Ask) -> list[Type]:
        """The types with these oids; asks for those that were not seen yet."""
        wanted = list(oids)
        missing = {oid for oid in wanted if oid not in self._known}
        for _ in range(_ROUNDS):
            if not missing:
                break
            for oid, *facts in await ask(_QUESTION, sorted(missing)):
                self._found[oid] = _Found(*facts)
            looked_at = [self._found[oid] for oid in missing if oid in self._found]
            parts = {part for one in looked_at for part in (one.base, one.element) if part}
            missing = parts - self._known.keys() - self._found.keys()
        return [self._make(oid) for oid in wanted]

    def _make(self, oid: int) -> Type:
        known = self._known.get(oid)
        if known is not None:
            return known
        found = self._found.get(oid)
        if found is None:
            # A type that was dropped meanwhile; PostgreSQL writes the same.
            return Type("???")
        made = Type(found.name)
        if found.base:
            made = self._make(found.base)._replace(name=found.name)
        elif found.element and found.delimiter == ",":
            made = Type(found.name, "array", self._make(found.element))
        self._known[oid] = made
        return made


class Session(NamedTuple):
    """One connection in a transaction, for what wants rows of tables besides the catalog."""

    ask: Ask
    run: Run
    types: Types

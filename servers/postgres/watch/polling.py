"""Detects changes without changing the database: by PostgreSQL's counts for each table, and by the versions of
catalog rows for the schema.

A connection reports its counts when its transactions have ended, but at most once per second; since version 15, the
counts of a last short transaction arrive about ten seconds later. Changes of foreign tables are not counted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from servers.postgres.engine.link import Ask

OWN_SCHEMA = "mcp_watch"
"""The schema of this package's triggers, which do not count as schema changes."""

_STATE = """
    concat_ws(' ', pg_catalog.pg_stat_get_tuples_inserted({0}), pg_catalog.pg_stat_get_tuples_updated({0}),
        pg_catalog.pg_stat_get_tuples_deleted({0}), pg_catalog.pg_relation_filenode({0}))"""
_SHAPE = """
    (SELECT sum(pg_catalog.hashtextextended(concat_ws(' ', a.attnum, a.xmin), 0))::pg_catalog.text
        FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = part.oid AND a.attnum > 0)"""
# For a view, the tables that it reads; for a partitioned or inherited table, those that contain its rows.
_PARTS = f"""
    WITH RECURSIVE part(name, oid, kind) AS (
        SELECT oid::pg_catalog.regclass::pg_catalog.text, oid, relkind FROM pg_catalog.pg_class
        WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND oid >= 16384
            AND oid::pg_catalog.regclass::pg_catalog.text = ANY ($1::pg_catalog.text[])
        UNION
        SELECT part.name, c.oid, c.relkind FROM part CROSS JOIN LATERAL (
            SELECT d.refobjid FROM pg_catalog.pg_rewrite AS w JOIN pg_catalog.pg_depend AS d
                ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = w.oid
                    AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
            WHERE part.kind = 'v' AND w.ev_class = part.oid
            UNION ALL SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = part.oid
        ) AS next(oid) JOIN pg_catalog.pg_class AS c ON c.oid = next.oid
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
    )
    SELECT name, oid::pg_catalog.int8, oid::pg_catalog.regclass::pg_catalog.text, kind::pg_catalog.text,
        {_SHAPE}, {_STATE.format("oid")} FROM part"""  # noqa: S608
_EVERYTHING = f"""
    SELECT sum(pg_catalog.hashtextextended({_STATE.format("oid")}, oid::pg_catalog.int8))::pg_catalog.text
    FROM pg_catalog.pg_class WHERE relkind IN ('r', 'm') AND oid >= 16384"""  # noqa: S608
# The versions of relations are left out, because TRUNCATE creates a new one without changing the schema.
_SCHEMA = f"""
    WITH own(oid) AS (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = '{OWN_SCHEMA}'),
    fact(line) AS (
        SELECT concat_ws(' ', 'class', oid, relname, relnamespace, relkind, relchecks, relispartition, reloptions)
        FROM pg_catalog.pg_class WHERE oid >= 16384 AND relkind NOT IN ('t', 'S')
        UNION ALL SELECT concat_ws(' ', 'attribute', attrelid, attnum, xmin)
        FROM pg_catalog.pg_attribute WHERE attrelid >= 16384 AND attnum > 0
        UNION ALL SELECT concat_ws(' ', 'constraint', oid, xmin) FROM pg_catalog.pg_constraint WHERE oid >= 16384
        UNION ALL SELECT concat_ws(' ', 'rewrite', oid, xmin) FROM pg_catalog.pg_rewrite WHERE oid >= 16384
        UNION ALL SELECT concat_ws(' ', 'enum', oid, xmin) FROM pg_catalog.pg_enum
        UNION ALL SELECT concat_ws(' ', 'comment', objoid, objsubid, xmin)
        FROM pg_catalog.pg_description WHERE objoid >= 16384
        UNION ALL SELECT concat_ws(' ', 'namespace', oid, xmin)
        FROM pg_catalog.pg_namespace WHERE oid >= 16384 AND nspname !~ '^pg_' AND oid NOT IN (SELECT oid FROM own)
        UNION ALL SELECT concat_ws(' ', 'function', oid, xmin)
        FROM pg_catalog.pg_proc WHERE oid >= 16384 AND pronamespace NOT IN (SELECT oid FROM own)
        UNION ALL SELECT concat_ws(' ', 'trigger', oid, tgname, tgenabled, tgfoid)
        FROM pg_catalog.pg_trigger WHERE NOT tgisinternal AND tgname <> '{OWN_SCHEMA}'
    )
    SELECT sum(pg_catalog.hashtextextended(line, 0))::pg_catalog.text FROM fact"""  # noqa: S608


class Part(NamedTuple):
    """A table with rows of a watched one: the table itself, a partition of it, or a table that a view reads."""

    name: str
    kind: str
    """The kind in `pg_class.relkind`."""
    shape: str | None
    """If this text differs, columns have changed."""
    state: str
    """If this text differs, rows have changed."""


class DatabaseState(NamedTuple):
    """A state of a database."""

    tables: Mapping[str, Mapping[int, Part]]
    """For each requested table, by name, its parts by oid. Tables that do not exist are missing."""
    everything: str | None
    """If this text differs, rows of some table have changed; None if it was not requested."""
    schema: str | None
    """If this text differs, the schema has changed; None if it was not requested."""

    def merge(self, earlier: "DatabaseState") -> "DatabaseState":
        """Merge both states. Where both have an entry, the one from `earlier` is used."""
        return DatabaseState(
            {**self.tables, **earlier.tables},
            self.everything if earlier.everything is None else earlier.everything,
            self.schema if earlier.schema is None else earlier.schema,
        )

    def list_parts(self) -> Iterator[tuple[int, Part]]:
        """Yield all parts of all tables, with their oids."""
        for parts in self.tables.values():
            yield from parts.items()


async def read_state(ask: Ask, tables: Collection[str], *, everything: bool, schema: bool) -> DatabaseState:
    """Read the current state. Raises SqlError."""
    parts: dict[str, dict[int, Part]] = defaultdict(dict)
    for name, oid, *facts in await ask(_PARTS, sorted(tables)) if tables else ():
        parts[name][oid] = Part(*facts)
    return DatabaseState(
        dict(parts),
        (await ask(_EVERYTHING))[0][0] or "" if everything else None,
        (await ask(_SCHEMA))[0][0] or "" if schema else None,
    )

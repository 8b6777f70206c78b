"""Detects changes without triggers.

PostgreSQL counts the inserted, updated and deleted rows of each table: if the counts differ, rows have changed. The
schema has changed if the versions (xmin) of rows in the catalog differ.

A session adds its changes to the counts when a transaction has ended, but at most once per second. Since version 15
of PostgreSQL, those of a session's last short transaction may arrive about ten seconds late. Changes of foreign
tables are not counted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from ..engine.link import Ask

WATCH_SCHEMA = "mcp_watch"
"""The schema of the triggers that report changes. Creating it or a trigger does not count as a schema change."""

_STATE = """
    concat_ws(' ', pg_catalog.pg_stat_get_tuples_inserted({0}), pg_catalog.pg_stat_get_tuples_updated({0}),
        pg_catalog.pg_stat_get_tuples_deleted({0}), pg_catalog.pg_relation_filenode({0}))"""
_SHAPE = """
    (SELECT sum(pg_catalog.hashtextextended(concat_ws(' ', a.attnum, a.xmin), 0))::pg_catalog.text
        FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = part.oid AND a.attnum > 0)"""
# Each requested table, and the tables that contain its rows: for a view, those that it reads; for a partitioned or
# inherited table, its partitions or children.
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
# The versions of rows in pg_class are left out, because TRUNCATE changes them without changing the schema.
_SCHEMA = f"""
    WITH own(oid) AS (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = '{WATCH_SCHEMA}'),
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
        FROM pg_catalog.pg_trigger WHERE NOT tgisinternal AND tgname <> '{WATCH_SCHEMA}'
    )
    SELECT sum(pg_catalog.hashtextextended(line, 0))::pg_catalog.text FROM fact"""  # noqa: S608


class Part(NamedTuple):
    """A table that contains rows of a watched table: the table itself, a partition of it, or a table that a watched
    view reads."""

    name: str
    kind: str
    """The kind in `pg_class.relkind`."""
    shape: str | None
    """A digest of the table's columns: if it differs, columns have changed."""
    state: str
    """The table's counts and the number of its file: if they differ, rows have changed."""


class DatabaseState(NamedTuple):
    """The state of what is watched in a database at one time. Any difference between two states is a change."""

    tables: Mapping[str, Mapping[int, Part]]
    """For each requested table, by name, its parts by oid. Tables that do not exist are missing."""
    all_rows: str | None
    """A digest of the counts of all tables: if it differs, rows of some have changed. None if not requested."""
    schema: str | None
    """A digest of the catalog: if it differs, the schema has changed. None if it was not requested."""

    def merge(self, earlier: "DatabaseState") -> "DatabaseState":
        """Return the union of both states. Values that both contain are taken from `earlier`."""
        return DatabaseState(
            {**self.tables, **earlier.tables},
            self.all_rows if earlier.all_rows is None else earlier.all_rows,
            self.schema if earlier.schema is None else earlier.schema,
        )

    def list_parts(self) -> Iterator[tuple[int, Part]]:
        """Yield all parts of all tables, with their oids."""
        for parts in self.tables.values():
            yield from parts.items()


async def read_state(ask: Ask, tables: Collection[str], *, all_rows: bool, schema: bool) -> DatabaseState:
    """Read the current state of these tables and, if requested, of all rows and of the schema. Raises SqlError."""
    parts: dict[str, dict[int, Part]] = defaultdict(dict)
    for name, oid, *facts in await ask(_PARTS, sorted(tables)) if tables else ():
        parts[name][oid] = Part(*facts)
    return DatabaseState(
        dict(parts),
        (await ask(_EVERYTHING))[0][0] or "" if all_rows else None,
        (await ask(_SCHEMA))[0][0] or "" if schema else None,
    )

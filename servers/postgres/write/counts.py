"""The numbers of rows that a transaction has changed so far, by table, through statements, triggers, foreign keys or
functions.

PostgreSQL itself keeps these counts. They include changes that were rolled back inside a function. They don't include
foreign tables, and are empty if the operator has set `track_counts` to off.
"""

from collections.abc import Mapping
from typing import NamedTuple

from servers.common.sql.texts import SqlName
from servers.postgres.engine.link import Ask

_XIDS = 1 << 24
"""An upper bound for the number of transactions that began after this one, including its own subtransactions.

A transaction number is older than this one if it is not among this many that follow it.
"""
# Oids of at least 16384 (FirstNormalObjectId) belong to objects that users created. An xmin has the last 32 bits of a
# transaction's number.
_COUNTS = f"""
    WITH counted AS (
        SELECT c.oid, pg_catalog.pg_stat_get_xact_tuples_inserted(c.oid) AS inserted,
            pg_catalog.pg_stat_get_xact_tuples_updated(c.oid) AS updated,
            pg_catalog.pg_stat_get_xact_tuples_deleted(c.oid) AS deleted
        FROM pg_catalog.pg_class AS c
        WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't' AND c.oid >= 16384
    )
    SELECT oid::pg_catalog.int8, oid::pg_catalog.regclass::pg_catalog.text, inserted, updated, deleted
    FROM counted WHERE inserted + updated + deleted > 0
    UNION ALL
    SELECT 0, '', count(*), 0, 0 FROM pg_catalog.pg_class
    WHERE oid >= 16384 AND pg_catalog.pg_current_xact_id_if_assigned() IS NOT NULL
        AND (xmin::pg_catalog.text::pg_catalog.int8
            - pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text::pg_catalog.int8) & 4294967295 < {_XIDS}"""  # noqa: S608


class TableCounts(NamedTuple):
    """The numbers of changed rows of one table."""

    table: SqlName
    """The name as PostgreSQL writes it."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def total(self) -> int:
        """Total number of changed rows."""
        return self.inserted + self.updated + self.deleted

    def add(self, other: "TableCounts", sign: int = 1) -> "TableCounts":
        """Add the `other` counts, or subtract them with `sign` -1.

        TRUNCATE resets PostgreSQL's counts, so results are never below zero.
        """
        pairs = zip(self[1:], other[1:], strict=True)
        return TableCounts(self.table, *(max(mine + sign * theirs, 0) for mine, theirs in pairs))


class Changes(NamedTuple):
    """The changes of a transaction so far, or of a part of it."""

    tables: Mapping[int, TableCounts]
    """By oid; tables without a changed row are missing."""
    schema_changes: int
    """Relations that it has created or altered."""

    @property
    def total(self) -> int:
        """Rows in all."""
        return sum(counts.total for counts in self.tables.values())

    def subtract(self, before: "Changes") -> "Changes":
        """Return the changes after `before`."""
        later = {
            oid: counts.add(before.tables[oid], -1) if oid in before.tables else counts
            for oid, counts in self.tables.items()
        }
        return Changes(
            {oid: counts for oid, counts in later.items() if counts.total},
            self.schema_changes - before.schema_changes,
        )

    def add(self, other: "Changes") -> "Changes":
        """Add the `other` changes."""
        tables = dict(self.tables)
        for oid, counts in other.tables.items():
            tables[oid] = counts.add(tables[oid]) if oid in tables else counts
        return Changes(tables, self.schema_changes + other.schema_changes)


NO_CHANGES = Changes({}, 0)


async def read_changes(ask: Ask) -> Changes:
    """Read the changes of the current transaction, possibly including earlier ones on the connection.

    Use `subtract` for the difference.
    """
    rows = await ask(_COUNTS)
    tables = {oid: TableCounts(SqlName(name), *counts) for oid, name, *counts in rows if oid}
    return Changes(tables, sum(row[2] for row in rows if not row[0]))

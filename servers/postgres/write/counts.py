"""Counts the rows that a transaction has changed so far in each table, by statements, triggers, foreign keys or
functions.

PostgreSQL itself keeps these counts. They include changes that were rolled back inside a function. They don't include
changes of foreign tables, and there are none if the setting `track_counts` of PostgreSQL is off.
"""

from collections.abc import Mapping
from typing import NamedTuple

from servers.common.sql.texts import SqlName

from ..engine.link import Ask

_XIDS = 1 << 24
"""Assumed maximum number of transactions, including subtransactions, that begin while this one runs. Transaction
numbers wrap around, so a number counts as later than this transaction's only if it is among the next `_XIDS`."""
# Oids from 16384 on (FirstNormalObjectId) belong to objects that users created. An xmin consists of the last 32 bits
# of a transaction number.
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
        """Return the sum of both counts, or their difference if `sign` is -1. A negative number becomes 0: it occurs
        because TRUNCATE resets PostgreSQL's counts."""
        pairs = zip(self[1:], other[1:], strict=True)
        return TableCounts(self.table, *(max(mine + sign * theirs, 0) for mine, theirs in pairs))


class Changes(NamedTuple):
    """The changes that a transaction, or a part of it, has made so far."""

    tables: Mapping[int, TableCounts]
    """The counts of each table, by oid; tables without a changed row are missing."""
    schema_changes: int
    """Number of relations (tables, indexes and so on) that were created or altered."""

    @property
    def total(self) -> int:
        """Total number of changed rows."""
        return sum(counts.total for counts in self.tables.values())

    def subtract(self, before: "Changes") -> "Changes":
        """Return the changes that were made after `before`."""
        later = {
            oid: counts.add(before.tables[oid], -1) if oid in before.tables else counts
            for oid, counts in self.tables.items()
        }
        return Changes(
            {oid: counts for oid, counts in later.items() if counts.total},
            self.schema_changes - before.schema_changes,
        )

    def add(self, other: "Changes") -> "Changes":
        """Return the sum of both changes."""
        tables = dict(self.tables)
        for oid, counts in other.tables.items():
            tables[oid] = counts.add(tables[oid]) if oid in tables else counts
        return Changes(tables, self.schema_changes + other.schema_changes)


NO_CHANGES = Changes({}, 0)


async def read_changes(ask: Ask) -> Changes:
    """Return the changes of the current transaction so far. They may include those of earlier transactions on the
    connection, so subtract what was read at the beginning."""
    rows = await ask(_COUNTS)
    tables = {oid: TableCounts(SqlName(name), *counts) for oid, name, *counts in rows if oid}
    return Changes(tables, sum(row[2] for row in rows if not row[0]))

"""Finds the rows that the statements of a dry run have changed, with their values before and after the change.

PostgreSQL stores in each version of a row the numbers of the transactions that created and deleted it. The new
versions are those that this transaction, or a subtransaction of it, has created. The old versions are those that it
has deleted; another connection still sees them. Both searches read the whole table, so large tables are not searched.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic_core import to_json

from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.write.results import TableChange

from ..engine.link import Link
from ..sql import quote
from ..values import Codec
from .counts import Changes, TableCounts
from .session import Session

_MAX_ROWS = 10
"""Maximum number of rows of a table that are shown."""
_MAX_COLUMNS = 60
"""Maximum number of columns of a table that are shown."""
_MAX_CELL_BYTES = 200
"""Maximum number of bytes of a value that are shown."""
_MAX_CANDIDATES = 1_000
"""Maximum number of rows that one search returns."""
_TABLE_BYTES = 64 << 20
"""Maximum size of a table that is searched, in bytes."""
_ROW_BYTES = 1_000_000
"""Maximum size of a row that is shown, in bytes."""

_DENIED = "the role may not read it, so no rows are shown"
_LARGE = f"no rows are shown, because it has more than {_TABLE_BYTES >> 20} MiB"
_LOCKED = "no rows are shown, because the statements alter or truncate it"
_VIEW = "a materialized view, whose rows are not shown"

# The fourth column is True if this transaction holds an AccessExclusiveLock, as after ALTER TABLE and TRUNCATE. If
# the other connection read such a table, it would wait for this transaction, which waits for the other connection.
_TABLE_PROPERTIES = """
    SELECT c.relkind::pg_catalog.text, pg_catalog.has_table_privilege(c.oid, 'SELECT'),
        pg_catalog.pg_table_size(c.oid), EXISTS (
            SELECT FROM pg_catalog.pg_locks AS l WHERE l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'relation'
                AND l.relation = c.oid AND l.mode = 'AccessExclusiveLock'),
        ARRAY(
            SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute AS a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
        ARRAY(
            SELECT pg_catalog.quote_ident(a.attname) FROM pg_catalog.pg_index AS i
            CROSS JOIN LATERAL pg_catalog.unnest(i.indkey) WITH ORDINALITY AS k(number, place)
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number
            WHERE i.indrelid = c.oid AND i.indisprimary AND k.place <= i.indnkeyatts ORDER BY k.place)
    FROM pg_catalog.pg_class AS c WHERE c.oid = $1::pg_catalog.oid"""
_XID = "SELECT pg_catalog.pg_current_xact_id()::pg_catalog.text::pg_catalog.int8"

Key = tuple[str, ...]


class _ChangedRow(NamedTuple):
    """Where a changed row is, and how to find its other version."""

    position: str
    """The position of the row in the table (`ctid`)."""
    key: Key
    """The values of the primary key as text."""


class _Table(NamedTuple):
    """A table that is searched for changed rows."""

    name: str
    columns: tuple[str, ...]
    key: Sequence[str]
    """The columns of the primary key, quoted if needed; empty for a table without one."""
    own_condition: str
    """An SQL condition that is true if a transaction number is that of this transaction or of one of its
    subtransactions. It has a placeholder for the number."""

    def select_changed(self, column: str) -> str:
        """Return a query for the positions and keys of rows whose `xmin` or `xmax` belongs to this transaction."""
        return f"{self._select_clause()} WHERE {self.own_condition.format(column)} LIMIT {_MAX_CANDIDATES}"

    def select_by_keys(self) -> str:
        """Return a query for the rows with given keys. It has a parameter for each column of the key: the array of
        its values."""
        texts = ", ".join(f"{name}::pg_catalog.text" for name in self.key)
        numbers = range(1, len(self.key) + 1)
        arrays = ", ".join(f"pg_catalog.unnest(${number}::pg_catalog.text[])" for number in numbers)
        return f"{self._select_clause()} WHERE ({texts}) IN (SELECT * FROM ROWS FROM ({arrays}) AS given)"  # noqa: S608

    def select_visible(self) -> str:
        """Return a query for those rows at given positions that the connection sees."""
        return f"{self._select_clause()} WHERE ctid = ANY ($1::pg_catalog.text[]::pg_catalog.tid[])"

    def select_shown(self) -> str:
        """Return a query for the rows at given positions: the position, and the columns that are shown."""
        columns = "".join(f", {quote(name)}" for name in self.columns)
        return (
            f"SELECT ctid::pg_catalog.text{columns} FROM ONLY {self.name} AS shown "  # noqa: S608
            "WHERE ctid = ANY ($1::pg_catalog.text[]::pg_catalog.tid[]) "
            f"AND pg_catalog.octet_length(shown::pg_catalog.text) <= {_ROW_BYTES}"
        )

    def _select_clause(self) -> str:
        key = ", ".join(f"{name}::pg_catalog.text" for name in self.key)
        return f"SELECT ctid::pg_catalog.text, ARRAY[{key}]::pg_catalog.text[] FROM ONLY {self.name}"  # noqa: S608


async def show_changes(session: Session, changes: Changes, limits: AnswerLimits) -> list[TableChange]:
    """Return the changes of each table, with the first changed rows. The transaction must still be open."""
    bytes_left = limits.bytes // 2
    shown: list[TableChange] = []
    async with session.lend_reader() as link, link.transaction(session.deadline):
        preview = _Preview(session, link)
        for oid, counts in sorted(changes.tables.items(), key=lambda item: item[1].table):
            change = await preview.show(oid, counts, bytes_left)
            bytes_left -= 2 * len(to_json(change.rows))
            shown.append(change)
    return shown


class _Preview:
    """Compares what two connections see of a table: that of the session sees the changes, `reader` the committed
    state before them."""

    def __init__(self, session: Session, reader: Link) -> None:
        self._session = session
        self._link = session.link
        self._reader = reader

    async def show(self, oid: int, counts: TableCounts, bytes_left: int) -> TableChange:
        """Return the changes of one table, with as many rows as fit into `bytes_left` bytes."""
        counts_by_kind = {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}
        ((kind, readable, size, locked, columns, key),) = await self._ask(self._link, _TABLE_PROPERTIES, oid)
        is_new = not await self._ask(
            self._reader, "SELECT FROM pg_catalog.pg_class WHERE oid = $1::pg_catalog.oid", oid
        )
        note = _find_note(kind, readable, size, locked=locked and not is_new)
        pairs: list[tuple[Any, Any]] = []
        shown = tuple(columns[:_MAX_COLUMNS])
        if not note and bytes_left > 0:
            ((own_xid,),) = await self._ask(self._link, _XID)
            ((next_xid,),) = await self._ask(self._reader, _XID)
            # Rows store only the last 32 bits of a transaction number, so very old numbers look like future ones. No
            # number from `next_xid` on can belong to this transaction.
            after = f"(({{0}}::pg_catalog.text::pg_catalog.int8 - {own_xid}) & 4294967295)"
            status = f"pg_catalog.pg_xact_status(({own_xid} + {after})::pg_catalog.text::pg_catalog.xid8)"
            table = _Table(
                counts.table,
                shown,
                key,
                f"CASE WHEN {after} < {next_xid - own_xid} THEN {status} = 'in progress' ELSE false END",
            )
            pairs = await self._pair_rows(table, counts, is_new=is_new)
            while pairs and 2 * len(to_json(pairs)) > bytes_left:
                pairs.pop()
        return TableChange(counts.table, counts_by_kind, shown, pairs, counts.total > len(pairs) and not note, note)

    async def _pair_rows(self, table: _Table, counts: TableCounts, *, is_new: bool) -> list[tuple[Any, Any]]:
        """Return the first changed rows, each as a pair of its values before and after the change; None if the row
        did not exist then."""
        removed: list[_ChangedRow] = []
        if not is_new and counts.updated + counts.deleted:
            candidates = await self._find_rows(self._reader, table.select_changed("xmax"))
            # A row that is only locked has this transaction in `xmax` too, so check whether it still exists.
            existing = await self._find_rows(self._link, table.select_visible(), [row.position for row in candidates])
            positions = {row.position for row in existing}
            removed = [row for row in candidates if row.position not in positions]
        removed = removed[: _MAX_ROWS if table.key or not counts.inserted + counts.updated else _MAX_ROWS // 2]
        before = await self._read(self._reader, table, removed)
        after: dict[str, tuple[Any, ...]] = {}
        by_key: dict[Key, str] = {}
        if removed and table.key:
            changed = await self._find_rows(self._link, table.select_by_keys(), *_transpose_keys(removed))
            by_key = {row.key: row.position for row in changed}
            after = await self._read(self._link, table, changed)
        pairs: list[tuple[Any, Any]] = [
            (before[row.position], after.get(by_key.get(row.key, ""))) for row in removed if row.position in before
        ]
        # If a row has no key, or its key was updated, its new version is found as a new row.
        if len(pairs) < _MAX_ROWS and (counts.inserted or (counts.updated and any(now is None for _, now in pairs))):
            new_rows = await self._find_added(table, is_new=is_new)
            pairs += [
                (None, row)
                for row in (await self._read(self._link, table, new_rows[: _MAX_ROWS - len(pairs)])).values()
            ]
        return pairs

    async def _find_added(self, table: _Table, *, is_new: bool) -> list[_ChangedRow]:
        """Return rows that the transaction has added. If the table has no key, these include updated rows."""
        candidates = await self._find_rows(self._link, table.select_changed("xmin"))
        if is_new or not table.key or not candidates:
            return candidates
        keys_before = {
            row.key
            for row in await self._find_rows(self._reader, table.select_by_keys(), *_transpose_keys(candidates))
        }
        return [row for row in candidates if row.key not in keys_before]

    async def _find_rows(self, link: Link, query: str, *values: object) -> list[_ChangedRow]:
        return [_ChangedRow(position, tuple(key)) for position, key in await self._ask(link, query, *values)]

    async def _read(
        self, link: Link, table: _Table, changed_rows: Sequence[_ChangedRow]
    ) -> dict[str, tuple[Any, ...]]:
        """Return the values of the rows, by position."""
        if not changed_rows:
            return {}
        positions = "{" + ",".join(f'"{row.position}"' for row in changed_rows) + "}"
        rows = await link.run(table.select_shown(), [positions.encode()], deadline=self._session.deadline)
        types = await self._session.types.read([column.oid for column in rows.columns], self._session.ask)
        return {cells[0]: cells[1:] for cells in Codec(types).encode(rows.rows, _MAX_CELL_BYTES)}

    async def _ask(self, link: Link, query: str, *values: object) -> list[tuple[Any, ...]]:
        return await link.ask(query, *values, deadline=self._session.deadline)


def _find_note(kind: str, readable: bool, size: int, *, locked: bool) -> str:
    """Return the reason why no rows are shown; empty if rows are shown."""
    if kind != "r":
        return _VIEW
    if not readable:
        return _DENIED
    if locked:
        return _LOCKED
    return _LARGE if size > _TABLE_BYTES else ""


def _transpose_keys(changed_rows: Sequence[_ChangedRow]) -> list[list[str]]:
    """Return one list for each column of the key, with its values in all rows."""
    return [list(column) for column in zip(*(row.key for row in changed_rows), strict=True)]

"""The rows that statements change, before and after: what a dry run shows.

They are found by who wrote them. Rows after the change are those that our transaction, or a part of it, has made;
rows before it are those that another connection still sees, and we do not see any more. Both are looked for in the
whole of a table, so this is done only where that does not take long.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic_core import to_json

from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.write.results import TableChange
from servers.postgres.engine.link import Link
from servers.postgres.sql import quote
from servers.postgres.values import Codec
from servers.postgres.write.counts import Changes, TableCounts
from servers.postgres.write.session import Session

_ROWS = 10
"""Rows of a table that are shown."""
_COLUMNS = 60
"""Columns of a table that are shown."""
_CELL = 200
"""Bytes of a value that are shown."""
_CANDIDATES = 1_000
"""Rows among which those to show are sought."""
_TABLE_BYTES = 64 << 20
"""What a table may have where it is looked through."""
_ROW_BYTES = 1_000_000
"""What a row may have to be shown."""

_DENIED = "the role may not read it, so no rows are shown"
_LARGE = f"no rows are shown, because it has more than {_TABLE_BYTES >> 20} MiB"
_LOCKED = "no rows are shown, because the statements alter or truncate it"
_VIEW = "a materialized view, of which no rows are shown"

# ALTER TABLE and TRUNCATE hold an AccessExclusiveLock until our transaction ends: the other connection would wait for
# that, and we for it.
_FACTS = """
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


class _Found(NamedTuple):
    """Where a row is, and its key."""

    place: str
    key: Key


class _Table(NamedTuple):
    """A table whose rows are looked for."""

    name: str
    columns: tuple[str, ...]
    key: Sequence[str]
    """The columns of the primary key, quoted where that is needed; none where there is no key."""
    ours: str
    """Whether a number of a transaction, to be put in, is one of ours; in SQL."""

    def find(self, column: str) -> str:
        """A question for the rows whose `xmin` or `xmax` is ours: their places and keys."""
        return f"{self._select()} WHERE {self.ours.format(column)} LIMIT {_CANDIDATES}"

    def find_keys(self) -> str:
        """A question for the rows with keys that are given column by column."""
        texts = ", ".join(f"{name}::pg_catalog.text" for name in self.key)
        numbers = range(1, len(self.key) + 1)
        given = ", ".join(f"pg_catalog.unnest(${number}::pg_catalog.text[])" for number in numbers)
        return f"{self._select()} WHERE ({texts}) IN (SELECT * FROM ROWS FROM ({given}) AS given)"  # noqa: S608

    def find_places(self) -> str:
        """A question for those of the rows at given places that are seen."""
        return f"{self._select()} WHERE ctid = ANY ($1::pg_catalog.text[]::pg_catalog.tid[])"

    def read(self) -> str:
        """A statement that gives the rows at given places: the place, and the columns that are shown."""
        columns = "".join(f", {quote(name)}" for name in self.columns)
        return (
            f"SELECT ctid::pg_catalog.text{columns} FROM ONLY {self.name} AS shown "  # noqa: S608
            "WHERE ctid = ANY ($1::pg_catalog.text[]::pg_catalog.tid[]) "
            f"AND pg_catalog.octet_length(shown::pg_catalog.text) <= {_ROW_BYTES}"
        )

    def _select(self) -> str:
        key = ", ".join(f"{name}::pg_catalog.text" for name in self.key)
        return f"SELECT ctid::pg_catalog.text, ARRAY[{key}]::pg_catalog.text[] FROM ONLY {self.name}"  # noqa: S608


async def show_changes(session: Session, changes: Changes, limits: AnswerLimits) -> list[TableChange]:
    """What changed in each table, with the first rows that did, before the transaction is rolled back."""
    left = limits.bytes // 2
    shown: list[TableChange] = []
    async with session.onlooker() as link, link.transaction(session.deadline):
        preview = _Preview(session, link)
        for oid, counts in sorted(changes.tables.items(), key=lambda item: item[1].table):
            change = await preview.show(oid, counts, left)
            left -= 2 * len(to_json(change.rows))
            shown.append(change)
    return shown


class _Preview:
    """Our connection, which sees the rows as they are now, and another one, which sees them as they were."""

    def __init__(self, session: Session, onlooker: Link) -> None:
        self._session = session
        self._now = session.link
        self._then = onlooker

    async def show(self, oid: int, counts: TableCounts, left: int) -> TableChange:
        """What changed in one table, with rows as long as `left` bytes last."""
        words = {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}
        ((kind, readable, size, locked, columns, key),) = await self._ask(self._now, _FACTS, oid)
        is_new = not await self._ask(
            self._then, "SELECT FROM pg_catalog.pg_class WHERE oid = $1::pg_catalog.oid", oid
        )
        note = _find_note(kind, readable, size, locked=locked and not is_new)
        pairs: list[tuple[Any, Any]] = []
        shown = tuple(columns[:_COLUMNS])
        if not note and left > 0:
            table = _Table(counts.table, shown, key, await self._build_ours())
            pairs = await self._pair(table, counts, is_new=is_new)
            while pairs and 2 * len(to_json(pairs)) > left:
                pairs.pop()
        return TableChange(counts.table, words, shown, pairs, counts.total > len(pairs) and not note, note)

    async def _pair(self, table: _Table, counts: TableCounts, *, is_new: bool) -> list[tuple[Any, Any]]:
        """The first rows that changed, each as it was and as it is."""
        gone = [] if is_new or not counts.updated + counts.deleted else await self._find_gone(table)
        gone = gone[: _ROWS if table.key or not counts.inserted + counts.updated else _ROWS // 2]
        before = await self._read(self._then, table, gone)
        after: dict[str, tuple[Any, ...]] = {}
        by_key: dict[Key, str] = {}
        if gone and table.key:
            changed = await self._find(self._now, table.find_keys(), *_turn(gone))
            by_key = {one.key: one.place for one in changed}
            after = await self._read(self._now, table, changed)
        pairs: list[tuple[Any, Any]] = [
            (before[one.place], after.get(by_key.get(one.key, ""))) for one in gone if one.place in before
        ]
        # With another key, or without any, what a row has become looks like a new one.
        if len(pairs) < _ROWS and (counts.inserted or (counts.updated and any(now is None for _, now in pairs))):
            made = await self._find_made(table, is_new=is_new)
            pairs += [
                (None, row) for row in (await self._read(self._now, table, made[: _ROWS - len(pairs)])).values()
            ]
        return pairs

    async def _find_gone(self, table: _Table) -> list[_Found]:
        """Rows that were there before and are not now. A row that is only locked looks alike to others."""
        candidates = await self._find(self._then, table.find("xmax"))
        still = await self._find(self._now, table.find_places(), [one.place for one in candidates])
        places = {one.place for one in still}
        return [one for one in candidates if one.place not in places]

    async def _find_made(self, table: _Table, *, is_new: bool) -> list[_Found]:
        """Rows that are there now and were not before; without a key also those that were others."""
        made = await self._find(self._now, table.find("xmin"))
        if is_new or not table.key or not made:
            return made
        known = {one.key for one in await self._find(self._then, table.find_keys(), *_turn(made))}
        return [one for one in made if one.key not in known]

    async def _build_ours(self) -> str:
        ((ours,),) = await self._ask(self._now, _XID)
        ((next_one,),) = await self._ask(self._then, _XID)
        # Rows have the last 32 bits of a number, so those of long ago look alike to some that are still to come.
        after = f"(({{0}}::pg_catalog.text::pg_catalog.int8 - {ours}) & 4294967295)"
        status = f"pg_catalog.pg_xact_status(({ours} + {after})::pg_catalog.text::pg_catalog.xid8)"
        return f"CASE WHEN {after} < {next_one - ours} THEN {status} = 'in progress' ELSE false END"

    async def _find(self, link: Link, question: str, *values: object) -> list[_Found]:
        return [_Found(place, tuple(key)) for place, key in await self._ask(link, question, *values)]

    async def _read(self, link: Link, table: _Table, found: Sequence[_Found]) -> dict[str, tuple[Any, ...]]:
        """The rows at these places, in cells."""
        if not found:
            return {}
        places = "{" + ",".join(f'"{one.place}"' for one in found) + "}"
        rows = await link.run(table.read(), [places.encode()], deadline=self._session.deadline)
        types = await self._session.types.read([column.oid for column in rows.columns], self._session.ask)
        return {cells[0]: cells[1:] for cells in Codec(types).encode(rows.rows, _CELL)}

    async def _ask(self, link: Link, question: str, *values: object) -> list[tuple[Any, ...]]:
        return await link.ask(question, *values, deadline=self._session.deadline)


def _find_note(kind: str, readable: bool, size: int, *, locked: bool) -> str:
    """Why no rows are shown; nothing where some are."""
    if kind != "r":
        return _VIEW
    if not readable:
        return _DENIED
    if locked:
        return _LOCKED
    return _LARGE if size > _TABLE_BYTES else ""


def _turn(found: Sequence[_Found]) -> list[list[str]]:
    """The keys, column by column."""
    return [list(column) for column in zip(*(one.key for one in found), strict=True)]

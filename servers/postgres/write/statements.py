"""Runs statements that change a database, one after another in one transaction, and determines the effect of each."""

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from anyio import to_thread

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import NO_ROWS, AnswerLimits, Page, PageBuilder
from servers.common.sql.query.query import Query
from servers.common.sql.texts import SqlName
from servers.common.sql.write.results import MIN_BYTES_FOR_ROWS, Effect, Statement, reduce_limits

from ..engine.link import Rows
from ..errors import PostgresError
from ..query.reading import bind
from ..schema.names import suggest_names
from ..values import Codec
from .allowed import Words, changes_schema, check_change
from .counts import NO_CHANGES, Changes, TableCounts, read_changes
from .session import Session

_THREAD_CHARACTERS = 20_000
"""A statement with more characters than this is checked in a thread."""
_COUNT_TAG = re.compile(r"(?:INSERT \d+|UPDATE|DELETE|MERGE) (\d+)")
"""Matches command tags with the number of rows that a statement changed itself, that is, without triggers."""
_TABLE_FILES = """
    SELECT oid::pg_catalog.int8, oid::pg_catalog.regclass::pg_catalog.text,
        pg_catalog.pg_relation_filenode(oid)::pg_catalog.int8
    FROM pg_catalog.pg_class WHERE relkind IN ('r', 'm') AND relpersistence <> 't' AND oid >= 16384"""


class BatchResult(NamedTuple):
    """The effects of the statements of a call."""

    effects: list[Effect]
    changes: Changes
    """The changes of all statements."""


class _Batch:
    """The statements of a call, in the current transaction."""

    def __init__(self, session: Session, limits: AnswerLimits) -> None:
        self._session = session
        self._limits = limits
        self._counted = NO_CHANGES
        """The changes of the transaction before the next statement."""
        self._result = BatchResult([], NO_CHANGES)

    async def run(self, statements: Sequence[Statement]) -> BatchResult:
        self._counted = await read_changes(self._session.ask)
        for number, statement in enumerate(statements, 1):
            self._session.deadline.position = location = f"statement {number}" if len(statements) > 1 else ""
            self._session.deadline.check()
            try:
                await self._run(statement, is_last=number == len(statements))
            except PostgresError as error:
                raise (await self._add_suggestion(error, statement.sql)).add_place(location) from None
            except SqlError as error:
                raise error.add_place(location) from None
        self._session.deadline.position = ""
        return self._result

    async def _run(self, statement: Statement, *, is_last: bool) -> None:
        is_long = len(statement.sql) > _THREAD_CHARACTERS
        session, check = self._session, partial(check_change, statement.sql, self._session.allowed)
        words = await to_thread.run_sync(check) if is_long else check()
        sql, values = bind(Query(*statement))
        # PostgreSQL does not count the rows that a TRUNCATE deletes.
        truncated = await self._find_truncated(sql) if words[0] == "TRUNCATE" else NO_CHANGES
        max_bytes = session.link.limits.value_bytes
        session.link.notices.clear()
        rows = await session.link.run(sql, values, deadline=session.deadline, max_bytes=max_bytes)
        notices = tuple(session.link.notices)
        if is_last:
            # Check deferred constraints now, so that their errors are reported as those of the last statement.
            await session.ask("SET CONSTRAINTS ALL IMMEDIATE")
        counted = await read_changes(session.ask)
        changes = counted.subtract(self._counted).add(truncated)
        self._counted = counted
        effect = await self._make_effect(rows, words, changes)
        # If a statement with IF EXISTS or IF NOT EXISTS is about a single object, a NOTICE means that it did nothing.
        has_one_object = words[0] == "CREATE" or (words[0] == "DROP" and not any("," in word for word in words))
        is_conditional = has_one_object and "EXISTS" in words[:7] and "CASCADE" not in words
        is_skipped = bool(notices) and not changes.schema_changes and is_conditional
        effect = effect._replace(notices=notices, schema_changed=effect.schema_changed and not is_skipped)
        self._limits = reduce_limits(self._limits, effect)
        self._result.effects.append(effect)
        self._result = self._result._replace(changes=self._result.changes.add(changes))

    async def _find_truncated(self, sql: str) -> Changes:
        """Count the rows that a TRUNCATE will delete: run it to see which tables it empties, roll it back, and count
        the rows of these tables."""
        ask = self._session.ask
        before = {oid: file for oid, _, file in await ask(_TABLE_FILES)}
        await ask("SAVEPOINT before_truncate")
        await self._session.link.run(sql, deadline=self._session.deadline)
        truncated = {oid: name for oid, name, file in await ask(_TABLE_FILES) if before.get(oid) != file}
        await ask("ROLLBACK TO SAVEPOINT before_truncate")
        await ask("RELEASE SAVEPOINT before_truncate")
        tables = {}
        for oid, name in truncated.items():
            ((count,),) = await ask(f"SELECT count(*) FROM ONLY {name}")  # noqa: S608 - PostgreSQL wrote the name
            tables[oid] = TableCounts(SqlName(name), deleted=count)
        return Changes({oid: counts for oid, counts in tables.items() if counts.total}, 0)

    async def _make_effect(self, rows: Rows, words: Words, changes: Changes) -> Effect:
        counted = _COUNT_TAG.fullmatch(rows.tag)
        total = changes.total if counted is None else max(changes.total, int(counted[1]))
        names = tuple(column.name for column in rows.columns)
        page, is_truncated = await self._make_page(rows, names) if names else (NO_ROWS, False)
        return Effect(
            total if counted is None else int(counted[1]),
            total,
            None,
            tuple(sorted(counts.table for counts in changes.tables.values())),
            changes_schema(words) or (counted is None and words[0] != "TRUNCATE" and changes.schema_changes > 0),
            names,
            page,
            is_truncated,
        )

    async def _make_page(self, rows: Rows, names: Sequence[str]) -> tuple[Page, bool]:
        """Return as many of the rows as fit, and whether there are more."""
        if not self._limits.rows or self._limits.bytes < MIN_BYTES_FOR_ROWS:
            return NO_ROWS, bool(rows.rows)
        types = await self._session.types.read([column.oid for column in rows.columns], self._session.ask)
        builder = PageBuilder(names, self._limits, Codec(types).encode)
        rest = rows.rows
        while rest and (max_rows := builder.rows_to_fetch):
            rest = [*builder.add(rest[:max_rows]), *rest[max_rows:]]
        return Page(builder.encoded, [type_.name for type_ in types]), bool(rest) or rows.is_truncated

    async def _add_suggestion(self, error: PostgresError, sql: str) -> SqlError:
        """Add the most similar names to an error about an unknown name."""
        if error.position is None:
            return error
        await self._session.link.roll_back()
        async with self._session.link.transaction(self._session.deadline):
            suggestion = await suggest_names(self._session.ask, error.state, sql, error.position)
        error.suggestion = suggestion or error.suggestion
        return error


async def run_all(session: Session, statements: Sequence[Statement], limits: AnswerLimits) -> BatchResult:
    """Run the statements in the current transaction, without committing it. Raises SqlError; if there are several
    statements, it names the number of the one that failed."""
    return await _Batch(session, limits).run(statements)

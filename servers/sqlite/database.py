"""Implements the interface that all database engines share for SQLite, whose connections work in threads."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from servers.common.sql.importing.imports import Import, ImportResult
from servers.common.sql.jobs import Job
from servers.common.sql.query.formats import ExportRequest
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.plan import Plan
from servers.common.sql.query.query import Parameters, Query, QueryRows, TableRows
from servers.common.sql.query.spans import statement_span
from servers.common.sql.schema.lines import ByteBudget
from servers.common.sql.schema.overview import DatabaseSummary, TableList, TablePage
from servers.common.sql.schema.table import TableDescription, TableRequest
from servers.common.sql.write.consent import Consent, Figures
from servers.common.sql.write.results import FormattedResult, ResponseLimits, Statement

from .engine.connection import Work
from .engine.database import Database
from .engine.entries import build_schema_sql
from .query import query as queries
from .query import rows
from .query.exporting import write_export
from .query.query import Answer
from .query.snapshots import Snapshots
from .schema import overview, table
from .values import decode_value
from .write import execution, importing
from .write.backups import Backup, back_up
from .write.session import Session, write

T = TypeVar("T")


class SqliteDatabase:
    """One SQLite database. It implements `servers.common.sql.database.Database`."""

    system = "sqlite"

    def __init__(self, database: Database, snapshots: Snapshots) -> None:
        self.name = database.name
        self.writable = database.writable
        self.lock_timeout = database.limits.busy_timeout
        self._database = database
        self._snapshots = snapshots

    def bind(self, parameters: Parameters) -> Parameters:
        """Convert the parameters to the form that SQLite accepts. Raises SqlError."""
        if isinstance(parameters, Mapping):
            return {name.lstrip(":@$"): decode_value(value) for name, value in parameters.items()}
        return [decode_value(value) for value in parameters]

    async def check(self) -> None:
        """Check that the database responds, by reading its schema. Raises SqlError."""
        await self._database.check()

    def read_at_once(self, query: Query, limits: AnswerLimits) -> QueryRows | None:
        """Return all rows of `query` if the event loop itself can read them at once; None if a thread has to."""
        quick = self._database.quick
        if not quick.can_run(query.sql):
            return None
        with statement_span(query.sql, self.system, self.name) as statement:
            answer = quick.run(query.sql, partial(queries.run_at_once, query, limits))
            declared = None
            if answer is not None:
                declared = self._database.declared_types(query.sql, answer.schema_version)
            if answer is None or declared is None:
                statement.drop()  # a thread runs it, within its own span
                return None
        return _query_rows(answer, declared)

    async def read(
        self, query: Query, limits: AnswerLimits, owner: str | None, cursor: str | None, job: Job | None
    ) -> QueryRows:
        """Return the first rows of `query`, or the rows after those that came with `cursor`. Raises SqlError."""
        with statement_span(query.sql, self.system, self.name):
            result = await self._snapshots.read(self._database, query, limits, owner, cursor, job)
        if cursor is None and not result.answer.has_more:
            await self._database.learn(query.sql, query.parameters, result.answer.duration)
        declared = await self._database.find_declared_types(query.sql, result.answer.schema_version)
        return _query_rows(result.answer, declared, result.cursor, changed=result.changed)

    async def explain(self, query: Query, limit: int) -> Plan:
        """Return the plan of a statement, compiled on a reading connection. Raises SqlError."""
        return await self._read(partial(queries.explain, query, limit))

    async def explain_change(self, query: Query, limit: int) -> Plan:
        """Return the plan of a statement, compiled on the writing connection. Raises SqlError."""
        async with self._database.writer() as connection:
            return await connection.run(partial(queries.explain, query, limit))

    async def list_tables(self, page: TablePage) -> TableList:
        """List the tables and views by name. Raises SqlError."""
        return await self._read(partial(overview.list_tables, page))

    async def describe_table(self, request: TableRequest, limits: AnswerLimits) -> TableDescription:
        """Describe one table. Raises SqlError."""
        return await self._read(partial(table.describe, request, limits))

    async def summarize(self, budget: ByteBudget, *, with_diagram: bool) -> DatabaseSummary:
        """Summarize as much of the schema as fits into the `budget`. Raises SqlError."""
        return await self._read(partial(overview.summarize, self.name, self.writable, budget, with_diagram))

    async def read_schema(self, limit: int) -> str:
        """Return the statements that create the schema. Raises SqlError."""
        return await self._read(partial(build_schema_sql, limit))

    async def read_table(self, table: str, limits: AnswerLimits) -> TableRows:
        """Return the first rows of a table. Raises SqlError."""
        return await self._read(partial(rows.read_first_rows, table, limits))

    async def read_row(self, table: str, key: str, limits: AnswerLimits) -> TableRows:
        """Return the row with this key. Raises SqlError."""
        return await self._read(partial(rows.find_row, table, key, limits))

    async def find_keys(self, table: str, typed: str) -> list[str]:
        """Return keys that begin with `typed`. Raises SqlError."""
        return await self._read(partial(rows.find_keys, table, typed))

    async def export(self, query: Query, request: ExportRequest, job: Job | None) -> tuple[int, int]:
        """Write all rows of a query to a file, and return the number of rows and bytes. Raises SqlError."""
        return await self._read(partial(write_export, query, request), job)

    async def check_compiles(self, query: Query, *, writes: bool) -> None:
        """Compile the statement without running it. Raises SqlError if it is not allowed or not valid."""
        work = partial(queries.require_compiles, query.sql)
        if writes:
            async with self._database.writer() as connection:
                await connection.run(work)
        else:
            await self._read(work)

    async def execute(
        self,
        statements: Sequence[Statement],
        limits: ResponseLimits,
        consent: Consent,
        job: Job | None,
        *,
        only_tables: bool,
    ) -> FormattedResult | Figures:
        """Run the statements in one transaction and commit it, or return the figures that the user must confirm
        first. Raises SqlError."""
        return await self._write(partial(execution.execute, statements, limits, only_tables, consent), job)

    async def dry_run(
        self, statements: Sequence[Statement], limits: ResponseLimits, job: Job | None
    ) -> FormattedResult:
        """Run the statements, return what they changed, and roll it back. Raises SqlError."""
        return await self._write(partial(execution.dry_run, statements, limits), job)

    async def import_csv(self, request: Import, consent: Consent, job: Job | None) -> ImportResult | Figures:
        """Insert all rows of a CSV file into a table, or return the figures that the user must confirm first. Raises
        SqlError."""
        return await self._write(partial(importing.import_csv, request, consent), job)

    async def back_up(self, directory: Path, job: Job) -> Backup:
        """Copy the database to a new file in the directory. Raises SqlError."""
        return await self._read(partial(back_up, directory, self.name), job)

    async def _read(self, work: Work[T], job: Job | None = None) -> T:
        return await self._database.read(work, job)

    async def _write(self, work: Callable[[Session], T], job: Job | None) -> T:
        return await write(self._database, work, job)


def _query_rows(
    answer: Answer, declared: Sequence[str | None], cursor: str | None = None, *, changed: bool = False
) -> QueryRows:
    return QueryRows(answer.names, declared, answer.page, answer.has_more, cursor, changed, answer.duration)

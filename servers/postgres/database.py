"""A PostgreSQL database with a pool of connections. It implements the interface that all SQL engines share."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

from servers.common.sql.errors import SqlError
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

from .catalog import Session, Types
from .commits import CommitCallback, ignore_commit
from .engine.connecting import OpeningError
from .engine.deadline import Deadline, Limits
from .engine.link import Link, open_link
from .engine.pool import Pool
from .engine.sharing import is_shared
from .engine.statement_text import ChangeError, find_kind, find_parameters, number_names
from .engine.target import Target
from .errors import BAD_TEXT, BAD_TIME, DENIED, NOT_UNIQUE, PostgresError
from .health.health import check_health, format_health
from .query import plans, rows
from .query.columns import ColumnTypes
from .query.exporting import write_export
from .query.reading import MODE, bind, check
from .query.snapshots import Snapshots
from .schema import overview, script, table
from .schema.names import find_relation, suggest_names, suggest_readable
from .values import encode_parameter
from .write import execution, importing
from .write import session as writing
from .write.allowed import NO_MORE_DDL, AllowedDdl, check_change

log = logging.getLogger("servers.postgres")

_EXCLUSIVE = frozenset({"ALTER", "DROP", "REFRESH", "REINDEX", "TRUNCATE"})
"""The first words of statements that need exclusive access to a table, and so wait for all transactions that have
read the table."""
_ALLOW_CHANGES = "The operator can allow changes with --allow-write, or :rw after the URL."


class PostgresDatabase:
    """One database; see `servers.common.sql.database.Database`.

    Its method `run` must run in a task. Close it at the end.
    """

    system = "postgresql"

    def __init__(self, target: Target, limits: Limits, readers: int, allowed: AllowedDdl = NO_MORE_DDL) -> None:
        self.name = target.name
        self.writable = target.writable
        self.lock_timeout = limits.busy_timeout
        self.on_committed: CommitCallback = ignore_commit
        """Called right after COMMIT by every function that changes the database."""
        self._target = target
        self._limits = limits
        self._allowed = allowed
        self._readers = Pool(self._open, readers, limits.timeout)
        self._writers = Pool(self._open, 1, limits.timeout)
        self._columns, self._types = ColumnTypes(), Types()
        self._snapshots = Snapshots(self.name, self._readers, self._columns, limits.timeout)

    async def run(self) -> None:
        """Release transactions that no client continues, until cancelled."""
        await self._snapshots.run()

    async def close(self) -> None:
        """Close all connections."""
        await self._readers.close()
        await self._writers.close()

    @property
    def is_shared(self) -> bool:
        """True if a pooler gives the PostgreSQL sessions of this program to other clients between transactions."""
        return self._target.is_shared

    async def connect(self) -> Link:
        """Open a connection outside the pool, which the caller closes. Raises SqlError."""
        return await open_link(self._target, self._limits)

    async def detect_sharing(self) -> None:
        """Detect whether a pooler shares the connections, unless the operator says so. Raises SqlError."""
        if not self.is_shared:
            self._target = self._target._replace(is_shared=await is_shared(self.connect))

    async def _open(self) -> Link:
        """Open a connection for a call."""
        try:
            return await self.connect()
        except OpeningError as error:
            # The details are only for the operator: the error itself does not contain them.
            log.warning("%s: %s", self.name, error.details)
            raise

    async def find_name(self, table: str) -> str:
        """Return the name of a table in the form in which PostgreSQL writes it, or `table` if there is no such table.

        Raises SqlError.
        """
        try:
            async with self._session() as session:
                return (await find_relation(session.ask, table)).name
        except SqlError as error:
            if error.code != "not_found":
                raise
            return table

    def bind(self, parameters: Parameters) -> Parameters:
        """Check that the parameters can be sent to PostgreSQL, and return them. Raises SqlError."""
        for value in parameters.values() if isinstance(parameters, Mapping) else parameters:
            encode_parameter(value)
        return parameters

    async def check(self) -> None:
        """Check that the database responds, unless all readers are busy. Raises SqlError."""
        if self._readers.is_free:
            async with self._session() as session:
                await session.ask("SELECT 1")

    def read_at_once(self, query: Query, limits: AnswerLimits) -> QueryRows | None:
        """Return None: PostgreSQL is another process, so no result is available at once."""
        return None

    async def read(
        self, query: Query, limits: AnswerLimits, owner: str | None, cursor: str | None, job: Job | None
    ) -> QueryRows:
        """Return the first rows of `query`, or the rows after those that came with `cursor`. Raises SqlError."""
        async with self._add_suggestions(query):
            with statement_span(query.sql, self.system, self.name):
                return await self._snapshots.read(query, limits, owner, cursor, job)

    async def explain(self, query: Query, limit: int) -> Plan:
        """Return the plan of a reading statement. Raises SqlError."""
        return await self._explain(query, limit, analyze=False)

    async def analyze(self, query: Query, limit: int) -> Plan:
        """Run a reading statement, and return its plan with the time it took. Raises SqlError."""
        return await self._explain(query, limit, analyze=True)

    async def explain_change(self, query: Query, limit: int) -> Plan:
        """Return the plan of a statement that changes the database. Raises SqlError."""
        sql, values = bind(_number_names(query))
        check_change(sql, self._allowed)
        deadline = Deadline(self._limits.timeout)
        async with self._writer(deadline) as link:
            return await plans.explain(sql, values, limit, self._open_session(link, deadline))

    async def list_tables(self, page: TablePage) -> TableList:
        """List the tables and views by name. Raises SqlError."""
        async with self._session() as session:
            return await overview.list_tables(page, session.ask)

    async def describe_table(self, request: TableRequest, limits: AnswerLimits) -> TableDescription:
        """Describe one table. Raises SqlError."""
        async with self._session() as session:
            return await table.describe(request, limits, session, self._limits.timeout)

    async def summarize(self, budget: ByteBudget, *, with_diagram: bool) -> DatabaseSummary:
        """Summarize as much of the schema as fits into the `budget`. Raises SqlError."""
        async with self._session() as session:
            return await overview.summarize(self.name, self.writable, budget, session.ask, with_diagram=with_diagram)

    async def read_schema(self, limit: int) -> str:
        """Return statements that recreate the schema. Raises SqlError."""
        async with self._session() as session:
            return await script.read_schema(limit, session.ask)

    async def read_table(self, table: str, limits: AnswerLimits) -> TableRows:
        """Return the first rows of a table. Raises SqlError."""
        async with self._session() as session:
            return await rows.read_first_rows(table, limits, session)

    async def read_row(self, table: str, key: str, limits: AnswerLimits) -> TableRows:
        """Return the row with that key. Raises SqlError."""
        async with self._session() as session:
            return await rows.find_row(table, key, limits, session)

    async def find_keys(self, table: str, typed: str) -> list[str]:
        """Return keys that begin with `typed`. Raises SqlError."""
        async with self._session() as session:
            return await rows.find_keys(table, typed, session)

    async def check_health(self) -> str:
        """Report the health of the server and the database. Raises SqlError."""
        async with self._session() as session:
            return format_health(self.name, await check_health(session.ask))

    async def export(self, query: Query, request: ExportRequest, job: Job | None) -> tuple[int, int]:
        """Write all rows of a query to a file, and return the number of rows and bytes. Raises SqlError."""
        deadline = Deadline(self._limits.timeout, job)
        async with self._add_suggestions(query):
            return await write_export(self._readers, query, request, self._columns, deadline)

    async def check_compiles(self, query: Query, *, writes: bool) -> None:
        """Prepare the statement without running it; its parameters need no values. Raises SqlError if it is not
        allowed or not valid."""
        sql, _ = bind(query._replace(parameters=dict.fromkeys(find_parameters(query.sql))))
        if writes:
            check_change(sql, self._allowed)
        else:
            await check(sql)
        deadline = Deadline(self._limits.timeout)
        async with self._writer(deadline) if writes else self._readers.transaction(deadline) as link:
            await link.describe(sql, deadline=deadline)

    async def execute(
        self,
        statements: Sequence[Statement],
        limits: ResponseLimits,
        consent: Consent,
        job: Job | None,
        *,
        only_tables: bool,
    ) -> FormattedResult | Figures:
        """Run the statements in one transaction. Raises SqlError."""
        await self._release_snapshots(statements)
        async with self._write_session(job) as session:
            return await execution.execute(statements, limits, consent, session, only_tables=only_tables)

    async def dry_run(
        self, statements: Sequence[Statement], limits: ResponseLimits, job: Job | None
    ) -> FormattedResult:
        """Run the statements, record the changes, and roll them back. Raises SqlError."""
        await self._release_snapshots(statements)
        async with self._write_session(job) as session:
            return await execution.dry_run(statements, limits, session)

    async def import_csv(self, request: Import, consent: Consent, job: Job | None) -> ImportResult | Figures:
        """Insert the rows of a CSV into a table, all or none. Raises SqlError."""
        async with self._write_session(job) as session:
            return await importing.import_csv(request, consent, session)

    async def _explain(self, query: Query, limit: int, *, analyze: bool) -> Plan:
        query = _number_names(query)
        sql, values = bind(query)
        async with self._add_suggestions(query):
            statement = await check(sql)
            async with self._session() as session:
                return await plans.explain(statement.body, values, limit, session, analyze=analyze)

    @asynccontextmanager
    async def _add_suggestions(self, query: Query) -> AsyncIterator[None]:
        """Add a suggestion to an SqlError in the block: the most similar names if a name in the query is unknown, or
        how to change the database if the query does so."""
        try:
            yield
        except ChangeError as error:
            error.suggestion = "Use write_query." if self.writable else _ALLOW_CHANGES
            raise
        except PostgresError as error:
            with suppress(SqlError):
                error.suggestion = await self._suggest(error, query) or error.suggestion
            raise

    async def _suggest(self, error: PostgresError, query: Query) -> str:
        """Return a suggestion for an error of `query`; empty if there is none. Raises SqlError."""
        if error.state == DENIED:
            async with self._session() as session:
                return await suggest_readable(session.ask, query.sql)
        values = query.parameters.values() if isinstance(query.parameters, Mapping) else query.parameters
        if error.state == BAD_TEXT and any(isinstance(value, list) for value in values):
            return "A list becomes an array: write = ANY($1) instead of IN ($1)."
        if error.state in (NOT_UNIQUE, BAD_TIME) and values:
            return "A parameter has the type that its place implies, unless a cast names it, as in $1::interval."
        if error.position is None:
            return ""
        async with self._session() as session:
            return await suggest_names(session.ask, error.state, bind(query)[0], error.position)

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Session]:
        """Open a read-only transaction, in which all queries see the same state of the database."""
        deadline = Deadline(self._limits.timeout)
        async with self._readers.transaction(deadline, MODE) as link:
            yield self._open_session(link, deadline)

    def _open_session(self, link: Link, deadline: Deadline) -> Session:
        return Session(partial(link.ask, deadline=deadline), partial(link.run, deadline=deadline), self._types)

    @asynccontextmanager
    async def _writer(self, deadline: Deadline) -> AsyncIterator[Link]:
        """Open a transaction that may change the database, and is rolled back."""
        self._require_writable()
        async with self._writers.transaction(deadline, "READ WRITE") as link:
            yield link

    @asynccontextmanager
    async def _write_session(self, job: Job | None) -> AsyncIterator[writing.Session]:
        self._require_writable()
        async with self._writers.lend() as link:
            parts = writing.SessionParts(link, self._readers.lend, self.on_committed, self._allowed)
            yield writing.Session(parts, Deadline(self._limits.timeout, job))

    def _require_writable(self) -> None:
        if not self.writable:
            raise SqlError("read_only", f"the database {self.name!r} is read-only", _ALLOW_CHANGES)

    async def _release_snapshots(self, statements: Sequence[Statement]) -> None:
        """If a statement needs exclusive access to a table, release the transactions kept for cursors."""
        if any(find_kind(statement.sql) in _EXCLUSIVE for statement in statements):
            await self._snapshots.release()


def _number_names(query: Query) -> Query:
    """Return the query to explain. If it has no values, `:name` becomes `$1`, since a plan needs none."""
    return query if query.parameters else query._replace(sql=number_names(query.sql)[0])

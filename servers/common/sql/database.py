"""The interface `Database`, which each engine implements, and a collection of databases by name.

Each engine has its own SQL, and its own names for types and for kinds of tables. Limits, result formats and texts,
tool names and the rules for confirmation are the same for all engines.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from .errors import SqlError
from .importing.imports import Import, ImportResult
from .jobs import Job
from .query.formats import ExportRequest
from .query.pages import AnswerLimits
from .query.plan import Plan
from .query.query import Parameters, Query, QueryRows, TableRows
from .schema.lines import ByteBudget
from .schema.overview import DatabaseSummary, TableList, TablePage
from .schema.table import TableDescription, TableRequest
from .write.consent import Consent, Figures
from .write.results import FormattedResult, ResponseLimits, Statement


class Database(Protocol):
    """One database. Its async methods raise SqlError. If the caller is cancelled, they stop the work in the
    database."""

    @property
    def name(self) -> str:
        """The name that clients use."""

    @property
    def system(self) -> str:
        """The database system, as in OpenTelemetry's `db.system.name`."""

    @property
    def writable(self) -> bool:
        """True if the database may be changed."""

    @property
    def lock_timeout(self) -> float:
        """Seconds to wait for a lock that another process holds."""

    def bind(self, parameters: Parameters) -> Parameters:
        """Convert a client's parameters to the form that the database accepts.

        Clients send plain JSON values, or objects with a type like those in results. Raises SqlError with code
        `bad_parameters`.
        """

    async def check(self) -> None:
        """Check that the database responds. If all connections are in use, assume that it does."""

    def read_at_once(self, query: Query, limits: AnswerLimits) -> QueryRows | None:
        """Return all rows of `query` if that is so quick that no other call has to wait, or None. Never raises."""

    async def read(
        self, query: Query, limits: AnswerLimits, owner: str | None, cursor: str | None, job: Job | None
    ) -> QueryRows:
        """Return the first rows of `query`, or the rows after a `cursor` from an earlier result for `owner`."""

    async def explain(self, query: Query, limit: int) -> Plan:
        """Return the plan of a reading statement, in at most `limit` bytes."""

    async def explain_change(self, query: Query, limit: int) -> Plan:
        """Return the plan of a statement that changes the database. Only one call at a time may do this."""

    async def list_tables(self, page: TablePage) -> TableList:
        """List the tables and views, except internal ones, sorted by name."""

    async def describe_table(self, request: TableRequest, limits: AnswerLimits) -> TableDescription:
        """Describe one table or view. An SqlError with code `not_found` suggests the most similar names."""

    async def summarize(self, budget: ByteBudget, *, with_diagram: bool) -> DatabaseSummary:
        """Summarize as much of the schema as fits the `budget`, and add a diagram if `with_diagram`."""

    async def read_schema(self, limit: int) -> str:
        """Return the statements that create the schema, in at most `limit` bytes."""

    async def read_table(self, table: str, limits: AnswerLimits) -> TableRows:
        """Return the first rows of a table, ordered by its key if it has one."""

    async def read_row(self, table: str, key: str, limits: AnswerLimits) -> TableRows:
        """Return the row with this key, which is written as by `uris.join_key`. Raises SqlError, with code
        `not_found` if there is no such row."""

    async def find_keys(self, table: str, typed: str) -> list[str]:
        """Return keys of rows that begin with `typed`, written as by `uris.join_key`."""

    async def export(self, query: Query, request: ExportRequest, job: Job | None) -> tuple[int, int]:
        """Write all rows of a query to a file, and return the number of rows and bytes."""

    async def check_compiles(self, query: Query, *, writes: bool) -> None:
        """Compile the statement without running it. Raises the errors that running it would raise at the start."""

    async def execute(
        self,
        statements: Sequence[Statement],
        limits: ResponseLimits,
        consent: Consent,
        job: Job | None,
        *,
        only_tables: bool,
    ) -> FormattedResult | Figures:
        """Run the statements in one transaction and commit it.

        If the user must confirm the changes first, change nothing and return the figures to show. If `only_tables`,
        the statements may only create tables. Only one call at a time may do this.
        """

    async def dry_run(
        self, statements: Sequence[Statement], limits: ResponseLimits, job: Job | None
    ) -> FormattedResult:
        """Run the statements in one transaction, return what they changed, and roll it back. Only one call at a time
        may do this."""

    async def import_csv(self, request: Import, consent: Consent, job: Job | None) -> ImportResult | Figures:
        """Insert all rows of a file into a table in one transaction.

        If the user must confirm the changes first, change nothing and return the figures to show. Only one call at a
        time may do this.
        """


class Named(Protocol):
    """An object with a name."""

    @property
    def name(self) -> str:
        """The name that clients use."""


D_co = TypeVar("D_co", bound=Named, covariant=True)


class Databases(Generic[D_co]):
    """The databases of a server, by name."""

    def __init__(self, databases: Iterable[D_co]) -> None:
        self._by_name = {database.name: database for database in databases}

    def __iter__(self) -> Iterator[D_co]:
        return iter(self._by_name.values())

    def get(self, name: str | None) -> D_co:
        """Return the database called `name`, which may be None if there is only one. Raises SqlError."""
        if name is None and len(self._by_name) == 1:
            return next(iter(self))
        if name is None:
            raise SqlError("bad_database", "there are several databases", f"Name one of them: {self._names()}.")
        if name not in self._by_name:
            raise SqlError("bad_database", "there is no database with that name", f"Available: {self._names()}.")
        return self._by_name[name]

    def _names(self) -> str:
        return ", ".join(self._by_name)

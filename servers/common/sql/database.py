"""What an engine has to give: one database as all that is no engine's sees it, and the databases under the names that
clients use.

Each engine brings its own SQL and its own words for kinds and types. Limits, forms and texts of answers, names of
tools and who has to be asked are the same for all.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.imports import Import, Imported
from servers.common.sql.jobs import Job
from servers.common.sql.query.formats import ExportRequest
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.query.plan import Plan
from servers.common.sql.query.query import Found, Parameters, Query, TableRows
from servers.common.sql.schema.lines import ByteBudget
from servers.common.sql.schema.overview import DatabaseSummary, TableList, TablePage
from servers.common.sql.schema.table import TableDescription, TableRequest
from servers.common.sql.write.consent import Consent, Figures
from servers.common.sql.write.results import ResponseLimits, Statement, Written


class Database(Protocol):
    """One database. All that waits raises SqlError, and stops the database's work where its caller is cancelled."""

    @property
    def name(self) -> str:
        """As clients call it."""

    @property
    def system(self) -> str:
        """What it is a database of, as OpenTelemetry names it in `db.system.name`."""

    @property
    def writable(self) -> bool:
        """Whether it may be changed."""

    @property
    def lock_seconds(self) -> float:
        """How long it is waited for a lock that somebody else holds."""

    def bind(self, parameters: Parameters) -> Parameters:
        """The parameters of a client, plain JSON or objects as answers have them, as the database takes them. Raises
        SqlError `bad_parameters`."""

    async def check(self) -> None:
        """Asks whether the database answers, unless all that could ask are at work: then it does."""

    def read_at_once(self, query: Query, limits: AnswerLimits) -> Found | None:
        """All rows of `query`, where that takes no time in which others would have to wait; else None. Raises
        nothing."""

    async def read(
        self, query: Query, limits: AnswerLimits, who: str | None, cursor: str | None, job: Job | None
    ) -> Found:
        """The first rows of `query`, or with a `cursor` that an answer to `who` came with those after it."""

    async def explain(self, query: Query, most: int) -> Plan:
        """How a statement that reads would be run, in `most` bytes."""

    async def explain_change(self, query: Query, most: int) -> Plan:
        """How a statement that changes the database would be run; for one caller at a time."""

    async def list_tables(self, page: TablePage) -> TableList:
        """The tables and views by name, without those that the database keeps for itself."""

    async def describe_table(self, wanted: TableRequest, limits: AnswerLimits) -> TableDescription:
        """All about one table or view; `not_found` comes with the nearest names."""

    async def summarize(self, budget: ByteBudget, *, drawn: bool) -> DatabaseSummary:
        """All of the schema that there is room for."""

    async def read_schema(self, most: int) -> str:
        """The statements that make the schema, in `most` bytes."""

    async def read_table(self, table: str, limits: AnswerLimits) -> TableRows:
        """The first rows of a table, by its key where it has one."""

    async def read_row(self, table: str, key: str, limits: AnswerLimits) -> TableRows:
        """The row with that key, as `uris.join_key` writes it; `not_found` where there is none."""

    async def find_keys(self, table: str, typed: str) -> list[str]:
        """Keys of rows that begin as was typed."""

    async def export(self, query: Query, wanted: ExportRequest, job: Job | None) -> tuple[int, int]:
        """Writes all rows of a query to a file; how many rows and bytes those are."""

    async def check_compiles(self, query: Query, *, writes: bool) -> None:
        """Raises what running the statement would raise before it begins; does not run it."""

    async def execute(
        self,
        statements: Sequence[Statement],
        limits: ResponseLimits,
        consent: Consent,
        job: Job | None,
        *,
        only_tables: bool,
    ) -> Written | Figures:
        """Runs the statements in one transaction and commits it; gives figures, and changes nothing, where a user
        must agree to them first. With `only_tables` they may make tables and nothing else. For one caller at a
        time."""

    async def dry_run(self, statements: Sequence[Statement], limits: ResponseLimits, job: Job | None) -> Written:
        """Runs the statements in one transaction, sees what changes, and rolls it back. For one caller at a time."""

    async def import_csv(self, wanted: Import, consent: Consent, job: Job | None) -> Imported | Figures:
        """Puts the rows of a CSV into a table, all or none; for one caller at a time."""


class Named(Protocol):
    """What has a name."""

    @property
    def name(self) -> str:
        """As clients call it."""


D_co = TypeVar("D_co", bound=Named, covariant=True)


class Databases(Generic[D_co]):
    """The databases by name."""

    def __init__(self, databases: Iterable[D_co]) -> None:
        self._by_name = {database.name: database for database in databases}

    def __iter__(self) -> Iterator[D_co]:
        return iter(self._by_name.values())

    def get(self, name: str | None) -> D_co:
        """The database called `name`; None is good where there is only one. Raises SqlError."""
        if name is None and len(self._by_name) == 1:
            return next(iter(self))
        if name is None:
            raise SqlError("bad_database", "there are several databases", f"Name one of them: {self._names()}.")
        if name not in self._by_name:
            raise SqlError("bad_database", "there is no database of that name", f"There are: {self._names()}.")
        return self._by_name[name]

    def _names(self) -> str:
        return ", ".join(self._by_name)

"""A made-up engine with tables in memory and three statements, which has only what an engine must have.

`SELECT * FROM name`, with `WHERE` and a column and a parameter; `INSERT INTO name VALUES (...)` with parameters;
`CREATE TABLE name (columns)`.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import anyio
from pydantic import Field

from servers.common.sql.database import Databases
from servers.common.sql.dialect import Dialect
from servers.common.sql.errors import SqlError
from servers.common.sql.features import describing, exporting, importing, insights, reading, resources, writing
from servers.common.sql.features.context import SqlServerState
from servers.common.sql.importing.imports import Import, ImportResult
from servers.common.sql.jobs import Job
from servers.common.sql.query.formats import ExportFile, ExportRequest
from servers.common.sql.query.pages import AnswerLimits, Page
from servers.common.sql.query.plan import Plan, make_plan
from servers.common.sql.query.query import Parameters, Query, QueryRows, TableRows
from servers.common.sql.schema import overview, table
from servers.common.sql.schema.lines import ByteBudget
from servers.common.sql.schema.overview import DatabaseSummary, SchemaFacts, TableList, TablePage
from servers.common.sql.schema.records import Entry, TableColumn
from servers.common.sql.schema.table import TableDescription, TableFacts, TableRequest
from servers.common.sql.server import make_server, serve
from servers.common.sql.settings import SqlSettings
from servers.common.sql.uris import Uris
from servers.common.sql.watch import DatabaseWatch, WatchedDatabase
from servers.common.sql.write.consent import Consent, Figures
from servers.common.sql.write.results import Effect, FormattedResult, ResponseLimits, Statement, make_result
from shared import Opening

__all__ = ["app"]

_FORM = re.compile(
    r"SELECT \* FROM (?P<read>\w+)(?: WHERE (?P<column>\w+) = \?)?|INSERT INTO (?P<into>\w+) VALUES \([?, ]+\)"
    r"|CREATE TABLE (?P<made>\w+) \((?P<columns>[\w, ]+)\)"
)
Row = tuple[Any, ...]

MADE_UP = Dialect(
    uris=Uris("madeup"),
    title="Made-up",
    find_parameters=lambda sql: re.findall(r"\?", sql),
    split_statements=lambda script: [part for part in script.split(";") if part.strip()],
    parameters="values for ?",
    read_only="it is read-only",
    words={
        "reading": "SELECT",
        "estimating": " nothing else",
        "describing": "columns",
        "explaining": "Show how it is read: whole.",
        "scripting": "Statements that make the tables.",
        "key": "",
        "numbers": "numbers",
        "text": "text",
    },
)


class Database:
    """Tables in memory."""

    system = "madeup"
    writable = True
    lock_timeout = 0.0

    def __init__(self, name: str) -> None:
        self.name = name
        self.tables: dict[str, tuple[list[str], list[Row]]] = {"pets": (["id", "name"], [("1", "Rex"), ("2", "Tom")])}

    def read_columns(self, name: str) -> list[TableColumn]:
        columns: list[TableColumn] = [
            {
                "name": column,
                "type": "any",
                "not_null": False,
                "default": None,
                "primary_key": int(column == "id"),
                "kind": "ordinary",
            }
            for column in self.get(name)[0]
        ]
        return columns

    def get(self, name: str) -> tuple[list[str], list[Row]]:
        if name not in self.tables:
            raise SqlError("not_found", "there is no table of that name")
        return self.tables[name]

    def bind(self, parameters: Parameters) -> Parameters:
        return parameters

    async def check(self) -> None:
        """Do nothing: the database is always available."""

    def read_at_once(self, query: Query, limits: AnswerLimits) -> QueryRows | None:
        return None

    async def read(
        self, query: Query, limits: AnswerLimits, owner: str | None, cursor: str | None, job: Job | None
    ) -> QueryRows:
        form = await self._parse(query.sql, "read")
        names, rows = self.get(form["read"])
        if form["column"]:
            (value,) = query.parameters
            rows = [row for row in rows if row[names.index(form["column"])] == value]
        start = int(cursor or 0)
        end = start + limits.rows
        more = str(end) if end < len(rows) else None
        return QueryRows(names, [], Page(rows[start:end], ["any"] * len(names)), more is not None, more, False, 0.0)

    async def explain(self, query: Query, most: int) -> Plan:
        name = (await self._parse(query.sql, "read"))["read"]
        return make_plan([{"level": 0, "detail": f"SCAN {name}"}], [name], most, is_incomplete=False)

    async def explain_change(self, query: Query, most: int) -> Plan:
        raise SqlError("refused", "nobody knows")

    async def list_tables(self, page: TablePage) -> TableList:
        return overview.list_page(self._list_entries(), {}, page)

    async def describe_table(self, request: TableRequest, limits: AnswerLimits) -> TableDescription:
        columns, entry = self.read_columns(request.table), Entry(request.table, "table", "")
        facts = TableFacts(entry, [], None, columns, [], [], [], [], {}, None)
        return table.describe_facts(facts, ByteBudget(limits.bytes))

    async def summarize(self, budget: ByteBudget, *, with_diagram: bool) -> DatabaseSummary:
        facts = SchemaFacts(self._list_entries(), [], [], {}, _Columns(self))
        return overview.summarize(self.name, self.writable, facts, budget, with_diagram=with_diagram)

    async def read_schema(self, most: int) -> str:
        return "\n".join(f"CREATE TABLE {name} ({', '.join(self.get(name)[0])});" for name in self.tables)[:most]

    async def read_table(self, table: str, limits: AnswerLimits) -> TableRows:
        names, rows = self.get(table)
        return {"table": table, "key": names[:1], "columns": names, "rows": rows[: limits.rows], "next_query": None}

    async def read_row(self, table: str, key: str, limits: AnswerLimits) -> TableRows:
        found = await self.read_table(table, limits._replace(rows=1_000))
        rows = [row for row in found["rows"] if row[0] == key]
        if not rows:
            raise SqlError("not_found", "no row has this key")
        return {**found, "rows": rows}

    async def find_keys(self, table: str, typed: str) -> list[str]:
        return [row[0] for row in self.get(table)[1] if row[0].startswith(typed)]

    async def export(self, query: Query, request: ExportRequest, job: Job | None) -> tuple[int, int]:
        names, rows = self.get((await self._parse(query.sql, "read"))["read"])
        with ExportFile(request, _Codec()) as file:
            file.begin(names)
            file.add(rows)
        return file.rows, file.bytes

    async def check_compiles(self, query: Query, *, writes: bool) -> None:
        await self._parse(query.sql, "into" if writes else "read")

    async def execute(
        self,
        statements: Sequence[Statement],
        limits: ResponseLimits,
        consent: Consent,
        job: Job | None,
        *,
        only_tables: bool,
    ) -> FormattedResult | Figures:
        forms = [await self._parse(one.sql, "made" if only_tables else "into") for one in statements]
        names = tuple(form["made"] or form["into"] for form in forms)
        figures = Figures(0 if only_tables else len(forms), tuple(1 for _ in forms), names, only_tables)
        if not consent.covers(figures):
            return figures
        for form, statement in zip(forms, statements, strict=True):
            if form["made"]:
                self.tables[form["made"]] = (form["columns"].split(", "), [])
            else:
                self.get(form["into"])[1].append(tuple(statement.parameters))
        effects = [Effect(1, 1, None, (name,), only_tables, (), Page([], []), False) for name in names]
        return make_result(effects, None, 0.0, limits.max_bytes)

    async def dry_run(
        self, statements: Sequence[Statement], limits: ResponseLimits, job: Job | None
    ) -> FormattedResult:
        return make_result([], [], 0.0, limits.max_bytes)

    async def import_csv(self, request: Import, consent: Consent, job: Job | None) -> ImportResult | Figures:
        raise SqlError("refused", "it takes no CSV")

    def _list_entries(self) -> list[Entry]:
        return [Entry(name, "table", "") for name in sorted(self.tables)]

    async def _parse(self, sql: str, what: str) -> Mapping[str, str]:
        form = _FORM.fullmatch(sql)
        if form is None or not form[what]:
            raise SqlError("refused", "the statement is not allowed: it is not one of those")
        return form.groupdict()


class _Columns:
    is_late = False

    def __init__(self, database: Database) -> None:
        self.read = self.read_in_time = database.read_columns


class _Codec:
    def encode(self, rows: Sequence[Row], cell_bytes: int) -> list[Row]:
        return [*rows]

    def format(self, rows: Sequence[Row]) -> Sequence[Sequence[str | None]]:
        return rows


class _Watch(DatabaseWatch[WatchedDatabase]):
    health: ClassVar[Mapping[str, object]] = {}

    async def _begin(self, name: str, key: str, table: str | None) -> str:
        return key

    async def _find_table(self, database: str, table: str) -> str:
        return table


class _Settings(SqlSettings):
    missing_hint: ClassVar[str] = "give a database"
    naming_hint: ClassVar[str] = "give other names"

    databases: list[str] = Field([], json_schema_extra={"positional": "NAME", "required": True})

    @cached_property
    def sources(self) -> list[Database]:
        return [Database(name) for name in self.databases]


app = make_server(
    MADE_UP,
    _Settings,
    include=[
        resources.declare(MADE_UP),
        describing.declare(MADE_UP),
        reading.declare_explain_query(MADE_UP),
        insights.features,
        exporting.declare(MADE_UP),
        reading.declare_read_query(MADE_UP),
        writing.declare(MADE_UP),
        importing.declare(MADE_UP),
    ],
)


@app.lifespan
async def _open(opening: Opening) -> AsyncIterator[SqlServerState]:
    async with anyio.create_task_group() as group:
        databases = Databases(opening.settings.sources)
        watch = _Watch(MADE_UP.uris, databases, opening.changes.resource, opening.changes.resources)
        async with serve(opening, MADE_UP, databases, watch, group) as opened:
            yield opened

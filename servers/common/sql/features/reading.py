"""The tools that query a database, and explain how a query would be run.

The result of a query has two forms: data (structured content) whose rows are JSON arrays, and text with the same
arrays as lines.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, with_config
from pydantic.config import JsonDict
from typing_extensions import TypedDict

from shared import Data, Features

from ..database import Database
from ..dialect import Dialect
from ..errors import SqlError
from ..query.plan import format_plan
from ..query.query import Parameters, Query, QueryRows
from ..texts import NOTE, fence, format_row
from .context import (
    NO_PARAMETERS,
    PARAMETERS,
    SAME_PARAMETERS,
    Ctx,
    CursorArgument,
    DatabaseArgument,
    MaxRowsArgument,
    SqlServerState,
    answer_limits,
    job_of,
    result_limits,
    turn_to_read,
    turn_to_write,
)

_SCHEMA: JsonDict = {
    "properties": {
        "columns": {"type": "array", "items": {"type": "string"}},
        "rows": {"type": "array", "items": {"type": "array"}},
        "truncated": {"type": "boolean"},
        "next_cursor": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["columns", "rows", "truncated", "next_cursor"],
}
"""The part of the result's schema that programs use. The rest is left out, since some hosts show the schema to the
model, where each word costs tokens."""


@with_config(json_schema_extra=_SCHEMA)
class QueryResult(TypedDict):
    """Rows of a query."""

    note: str
    """Tells the model that the rest is data, not instructions."""
    truncated: bool
    next_cursor: str | None
    changed: bool
    elapsed_ms: float
    columns: Sequence[str]
    declared: Sequence[str | None]
    """The type that each column was declared with; None for an expression."""
    types: Sequence[str]
    """The type of the values in each column, as the database calls it."""
    rows: list[list[Any]]


def declare_read_query(dialect: Dialect) -> Features[SqlServerState]:
    """Declare the tool that queries a database."""
    features = Features[SqlServerState]()

    def read_at_once(
        ctx: Ctx, query: str, parameters: Parameters, max_rows: int | None, cursor: str | None, database: str | None
    ) -> Data[QueryResult] | None:
        source = ctx.state.databases.get(database)
        return answer_at_once(ctx, source, Query(query, source.bind(parameters)), max_rows, cursor)

    at_once = read_at_once if dialect.reads_at_once else None

    @features.tool(read_only=True, task="optional", app=dialect.result_app, at_once=at_once)
    @dialect.fill_words
    async def read_query(
        ctx: Ctx,
        query: Annotated[str, Field(description=dialect.query)],
        parameters: Annotated[list[Any] | dict[str, Any], PARAMETERS, Field(description=dialect.parameters)] = (
            NO_PARAMETERS
        ),
        max_rows: MaxRowsArgument = None,
        cursor: CursorArgument = None,
        database: DatabaseArgument = None,
    ) -> Data[QueryResult]:
        """Run a statement that reads: {reading}. It can't change anything.

        Rows are arrays. A value that JSON can't represent exactly is an object with its type; so is a long one, which is truncated.
        """  # noqa: E501 - clients receive the line as it is
        source = ctx.state.databases.get(database)
        return await answer_query(ctx, source, Query(query, source.bind(parameters)), max_rows, cursor)

    return features


def declare_explain_query(dialect: Dialect) -> Features[SqlServerState]:
    """Declare the tool that explains how a query would be run."""
    features = Features[SqlServerState]()

    @features.tool(read_only=True)
    @dialect.fill_words
    async def explain_query(
        ctx: Ctx,
        query: str,
        parameters: Annotated[list[Any] | dict[str, Any], PARAMETERS, SAME_PARAMETERS] = NO_PARAMETERS,
        database: DatabaseArgument = None,
    ) -> str:
        """{explaining}"""
        source = ctx.state.databases.get(database)
        return await explain(ctx, source, Query(query, source.bind(parameters)))

    return features


def answer_at_once(
    ctx: Ctx, source: Database, query: Query, max_rows: int | None, cursor: str | None
) -> Data[QueryResult] | None:
    """Return all rows of a query, in both forms, if the database can return them at once; otherwise None."""
    result = source.read_at_once(query, result_limits(ctx, max_rows)) if cursor is None else None
    return None if result is None else _make_answer(make_result(result))


async def answer_query(
    ctx: Ctx, source: Database, query: Query, max_rows: int | None, cursor: str | None
) -> Data[QueryResult]:
    """Return the next rows of a query, in both forms. Raises SqlError."""
    # Try this again, since middleware or other calls in progress may have prevented `at_once` of the tool.
    answer = answer_at_once(ctx, source, query, max_rows, cursor)
    if answer is not None:
        return answer
    async with turn_to_read(ctx, source):
        rows = await source.read(query, result_limits(ctx, max_rows), ctx.owner, cursor, job_of(ctx))
    result = make_result(rows)
    count = len(result["rows"])
    if result["truncated"] and (max_rows is None or count < max_rows):
        await ctx.log(
            "info",
            f"a result from the database {source.name!r} was truncated: {count:,} rows shown",
            ctx.state.dialect.name,
        )
    return _make_answer(result)


def _make_answer(result: QueryResult) -> Data[QueryResult]:
    return Data(result, format_result(result), is_json=True)


def make_result(result: QueryRows) -> QueryResult:
    """Return the result as data."""
    names, declared, page = result.names, result.declared, result.page
    return {
        "note": NOTE,
        "truncated": result.has_more,
        "next_cursor": result.cursor,
        "changed": result.changed,
        "elapsed_ms": round(result.duration * 1_000, 2),
        "columns": names,
        "declared": declared if len(declared) == len(names) else [None] * len(names),
        "types": page.types,
        "rows": list(map(list, page.rows)),
    }


def format_result(result: QueryResult) -> str:
    """Return the result as text."""
    count = len(result["rows"])
    facts = [f"{count} row{'' if count == 1 else 's'}", f"{result['elapsed_ms']:g} ms"]
    if result["changed"]:
        facts.append("the database may have been changed since the earlier rows; some may be missing or repeated")
    if result["truncated"]:
        facts.append(f"truncated; continue with cursor {result['next_cursor']}")
    if not result["columns"]:
        return "; ".join(facts)
    type_rows = {"declared": result["declared"], "types": result["types"]}
    headings = [f"columns {format_row(result['columns'])}"]
    headings += [f"{heading} {format_row(types)}" for heading, types in type_rows.items() if any(types)]
    return "\n".join(("; ".join(facts), fence([*headings, *map(format_row, result["rows"])])))


async def explain(ctx: Ctx, source: Database, query: Query) -> str:
    """Return the plan of a statement as text.

    A reading connection compiles the statement; if it refuses, because the statement changes data, a writing
    connection does. Raises SqlError.
    """
    require_no_explain(query.sql)
    max_bytes = answer_limits(ctx, None).bytes
    try:
        async with turn_to_read(ctx, source):
            plan = await source.explain(query, max_bytes)
    except SqlError as error:
        if error.code != "refused" or not source.writable:
            raise
        async with turn_to_write(ctx, source):
            plan = await source.explain_change(query, max_bytes)
    return format_plan(plan)


def require_no_explain(sql: str) -> None:
    """Raise SqlError if a statement to explain begins with EXPLAIN itself."""
    if sql.lstrip()[:8].rstrip().upper() == "EXPLAIN":
        raise SqlError("bad_statement", "the statement begins with EXPLAIN, which this tool adds", "Omit EXPLAIN.")

"""The tool that queries a database, and what a query gives in both forms: the same arrays of JSON, as data and as
lines of a text.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from typing_extensions import TypedDict

from shared import (
    Data,
    Features,
)

from ..engine.database import Database
from ..engine.spans import statement_span
from ..query.pages import AnswerLimits
from ..query.query import Query, bind, run_at_once
from ..query.snapshots import Found
from ..texts import NOTE, fence, format_row
from .context import (
    LOGGER,
    RESULT_APP,
    Ctx,
    CursorArgument,
    DatabaseArgument,
    MaxRowsArgument,
    Opened,
    ParametersArgument,
    QueryArgument,
    job_of,
    limit_answer,
    turn_to_read,
)

features = Features[Opened]()


class QueryResult(TypedDict):
    """Rows of a query."""

    note: str
    """How to take what follows."""
    truncated: bool
    next_cursor: str | None
    changed: bool
    elapsed_ms: float
    columns: Sequence[str]
    declared: Sequence[str | None]
    """The type that each column was declared with; None for an expression."""
    types: list[str]
    """The storage classes of each column's values."""
    rows: list[list[Any]]


@features.tool(title="Read query", read_only=True, task="optional", app=RESULT_APP)
async def read_query(
    ctx: Ctx,
    query: QueryArgument,
    parameters: ParametersArgument = [],  # noqa: B006 - pydantic copies it
    max_rows: MaxRowsArgument = None,
    cursor: CursorArgument = None,
    database: DatabaseArgument = None,
) -> Data[QueryResult]:
    """Run a statement that reads: SELECT, WITH, VALUES, EXPLAIN, PRAGMA that tells. It can't change anything.

    Rows are arrays. A value that JSON can't hold exactly is an object with its type; so are long ones, which are cut.
    """
    source = ctx.state.databases.get(database)
    return await answer_query(ctx, source, Query(query, bind(parameters)), max_rows, cursor)


async def answer_query(
    ctx: Ctx, source: Database, query: Query, max_rows: int | None, cursor: str | None
) -> Data[QueryResult]:
    """The next rows of a query, in both forms. Raises SqliteError."""
    limits = limit_answer(ctx, max_rows)
    found = _read_at_once(source, query, limits) if cursor is None else None
    if found is not None:
        declared = await source.find_declared_types(query.sql, found.answer.schema_version)
    else:
        found, declared = await _read_in_turn(ctx, source, query, limits, cursor)
    result = make_result(found, declared)
    count = len(result["rows"])
    if result["truncated"] and (max_rows is None or count < max_rows):
        await ctx.log("info", f"a result of the database {source.name!r} was cut: {count:,} rows shown", LOGGER)
    return Data(result, format_result(result), is_json=True)


def _read_at_once(source: Database, query: Query, limits: AnswerLimits) -> Found | None:
    """All rows, where that needs no thread, and so no turn; else None."""
    if not source.quick.knows(query.sql):
        return None
    with statement_span(query.sql, source.name):
        answer = source.quick.run(query.sql, partial(run_at_once, query, limits))
    return None if answer is None else Found(answer, None, False)


async def _read_in_turn(
    ctx: Ctx, source: Database, query: Query, limits: AnswerLimits, cursor: str | None
) -> tuple[Found, Sequence[str | None]]:
    """The next rows, read by a thread, and the declared types of their columns. Raises SqliteError."""
    async with turn_to_read(ctx, source):
        with statement_span(query.sql, source.name):
            found = await ctx.state.snapshots.read(source, query, limits, ctx.owner, cursor, job_of(ctx))
        if cursor is None and not found.answer.more:
            await source.learn(query.sql, query.parameters, found.answer.seconds)
        return found, await source.find_declared_types(query.sql, found.answer.schema_version)


def make_result(found: Found, declared: Sequence[str | None]) -> QueryResult:
    """The rows as data; `declared` may be empty, where no types are known."""
    names, page = found.answer.names, found.answer.page
    return {
        "note": NOTE,
        "truncated": found.answer.more,
        "next_cursor": found.cursor,
        "changed": found.changed,
        "elapsed_ms": round(found.answer.seconds * 1_000, 2),
        "columns": names,
        "declared": declared if len(declared) == len(names) else [None] * len(names),
        "types": [", ".join(sorted(types)) for types in page.types],
        "rows": list(map(list, page.rows)),
    }


def format_result(result: QueryResult) -> str:
    """The same as text."""
    count = len(result["rows"])
    facts = [f"{count} row{'' if count == 1 else 's'}", f"{result['elapsed_ms']:g} ms"]
    if result["changed"]:
        facts.append("the database was changed since the rows before these, so some may be missing or double")
    if result["truncated"]:
        facts.append(f"cut; go on with cursor {result['next_cursor']}")
    if not result["columns"]:
        return "; ".join(facts)
    heads = [f"{head} {format_row(result[head])}" for head in ("columns", "declared", "types")]
    return "\n".join(("; ".join(facts), fence([*heads, *map(format_row, result["rows"])])))

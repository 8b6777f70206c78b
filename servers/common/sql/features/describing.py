"""What is in a database, as texts."""

from shared.extensions.apps import show, shows_apps

from ..database import Database
from ..errors import SqlError
from ..schema.lines import ByteBudget
from ..schema.overview import DatabaseSummary, TablePage, describe_unreadable, format_overview, format_tables
from ..schema.table import TableRequest, format_table
from .context import Ctx, limit_answer, turn_to_read


async def list_tables(ctx: Ctx, limit: int, cursor: str | None, database: str | None) -> str:
    """The tables and views of a database by name, `limit` at most. Raises SqlError."""
    page = TablePage(cursor, min(limit, ctx.budget.entries), limit_answer(ctx, None).bytes)
    source = ctx.state.databases.get(database)
    async with turn_to_read(ctx, source):
        return format_tables(await source.list_tables(page))


async def describe_table(ctx: Ctx, wanted: TableRequest, database: str | None) -> str:
    """All about a table. Raises SqlError."""
    source = ctx.state.databases.get(database)
    async with turn_to_read(ctx, source):
        return format_table(await source.describe_table(wanted, limit_answer(ctx, None)))


async def describe_databases(ctx: Ctx, max_bytes: int, database: str | None) -> str:
    """What is in a database, or in all, in so many bytes. Raises SqlError where one alone can't be read."""
    databases = ctx.state.databases
    chosen = list(databases) if database is None else [databases.get(database)]
    left = min(max_bytes, limit_answer(ctx, None).bytes)
    summaries: list[DatabaseSummary] = []
    # A diagram is of one database.
    drawn = len(chosen) == 1 and shows_apps(ctx)
    for index, one in enumerate(chosen):
        budget = ByteBudget(left // (len(chosen) - index))
        left -= budget.left
        async with turn_to_read(ctx, one):
            summaries.append(await _summarize(one, budget, alone=len(chosen) == 1, drawn=drawn))
        left += max(budget.left, 0)
    if drawn and (diagram := summaries[0]["diagram"]) is not None:
        show(ctx, diagram)
    return format_overview(summaries)


async def _summarize(database: Database, budget: ByteBudget, *, alone: bool, drawn: bool) -> DatabaseSummary:
    try:
        return await database.summarize(budget, drawn=drawn)
    except SqlError as error:
        if alone:
            raise
        return describe_unreadable(database.name, database.writable, f"{error.code}: {error.line}")

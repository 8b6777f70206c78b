"""The tool and resources of the archived npm server `@modelcontextprotocol/server-postgres`, for clients that only
know these: the tool `query` with `sql`, and `postgres://.../TABLE/schema` for each table.

The archived server sent the text of `sql` unchanged, so `COMMIT; DROP SCHEMA public CASCADE` ended its read-only
transaction. Here `sql` must be a single statement, which runs like that of `read_query`.
"""

import json
from typing import Annotated
from urllib.parse import quote

from pydantic import Field

from servers.common.sql.database import Database
from servers.common.sql.features.context import Ctx, SqlServerState, answer_limits, job_of, turn_to_read
from servers.common.sql.query.query import Query, QueryRows
from shared import Features, Resource, ResourceNotFound, TextContent

features = Features[SqlServerState]()

_TABLES = """
    SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name"""
_COLUMNS = """
    SELECT column_name, data_type FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position"""
_JSON = "application/json"


@features.tool(title="Query", read_only=True)
async def query(ctx: Ctx, sql: Annotated[str, Field(description="one statement that reads")]) -> list[TextContent]:
    """Run a read-only SQL query. Rows are JSON objects."""
    result = await _read(ctx, _find_database(ctx, ""), Query(sql, ()))
    notes = []
    if result.has_more:
        notes.append(f"truncated: {len(result.page.rows)} rows shown; continue with LIMIT and OFFSET")
    if len({*result.names}) < len(result.names):
        notes.append("columns with the same name are merged here; rename them with AS")
    return [TextContent(text=text) for text in (_format(result), *notes)]


@features.lists_resources
async def list_schemas(ctx: Ctx) -> list[Resource]:
    """The tables of the schema `public`, each with the URI of its columns."""
    database = _find_database(ctx, "")
    result = await _read(ctx, database, Query(_TABLES, ()))
    return [
        Resource(uri=_format_uri(database.name, name), name=f'"{name}" database schema', mime_type=_JSON)
        for (name,) in result.page.rows
    ]


@features.resource("postgres://{+place}/{table}/schema", name="columns", title="Columns of a table", mime_type=_JSON)
async def read_columns(ctx: Ctx, place: str, table: str) -> str:
    """The columns of a table with their types, as JSON."""
    result = await _read(ctx, _find_database(ctx, place), Query(_COLUMNS, [table]))
    if not result.page.rows:
        raise ResourceNotFound(_format_uri(place, table))
    return _format(result)


def _format_uri(place: str, table: str) -> str:
    return f"postgres://{place}/{quote(table, safe='')}/schema"


def _find_database(ctx: Ctx, place: str) -> Database:
    """Return the database with that name, or else the first one, since the archived server had only one."""
    databases: list[Database] = [*ctx.state.databases]
    return next((database for database in databases if database.name == place), databases[0])


async def _read(ctx: Ctx, database: Database, query: Query) -> QueryRows:
    async with turn_to_read(ctx, database):
        return await database.read(query, answer_limits(ctx, None), ctx.owner, None, job_of(ctx))


def _format(result: QueryRows) -> str:
    rows = [dict(zip(result.names, row, strict=True)) for row in result.page.rows]
    return json.dumps(rows, indent=2, ensure_ascii=False)

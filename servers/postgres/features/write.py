"""The tools that change databases."""

from typing import Annotated

from pydantic import Field

from servers.common.sql.features import writing
from servers.common.sql.features.context import NO_PARAMETERS, Ctx, DatabaseArgument, Opened
from servers.common.sql.features.writing import OfEach, OneOrSeveral
from servers.common.sql.write.csvs import CsvFormat
from servers.common.sql.write.results import Statement, WriteResult
from shared import Data, Features

from .context import check_writable

features = Features[Opened]()


@features.tool(title="Write query", unavailable=check_writable, task="optional")
async def write_query(
    ctx: Ctx,
    query: OneOrSeveral,
    parameters: OfEach = NO_PARAMETERS,
    dry_run: Annotated[bool, Field(description="show what would change, and change nothing")] = False,
    max_rows: Annotated[int | None, Field(ge=1, description="rows at most, of SELECT and RETURNING")] = None,
    database: DatabaseArgument = None,
) -> Data[WriteResult]:
    """Run statements that change data or the schema, in one transaction: all is committed, or nothing."""
    source = ctx.state.databases.get(database)
    return await writing.write(ctx, source, query, parameters, dry_run, max_rows)


@features.tool(title="Create table", unavailable=check_writable, destructive=False)
async def create_table(
    ctx: Ctx,
    query: Annotated[str, Field(description="one CREATE TABLE statement")],
    database: DatabaseArgument = None,
) -> str:
    """Make a table with CREATE TABLE, and do nothing else; write_query makes all the rest of a schema."""
    done = await writing.execute_statements(
        ctx, ctx.state.databases.get(database), [Statement(query)], only_tables=True
    )
    return done.text


@features.tool(title="Import CSV", unavailable=check_writable, destructive=False, task="optional")
async def import_csv(
    ctx: Ctx,
    table: Annotated[str, Field(description="where the rows go; made where it is not there")],
    csv: Annotated[str | None, Field(description="the CSV itself")] = None,
    file: Annotated[
        str | None, Field(description="instead of csv: name of a file in the operator's directory")
    ] = None,
    delimiter: Annotated[str, Field(pattern=r'^[^"\r\n]$')] = ",",
    header: Annotated[bool, Field(description="whether the first row names the columns")] = True,
    database: DatabaseArgument = None,
) -> str:
    """Put the rows of a CSV into a table, all or none; makes the table where there is none. Empty fields are NULL.

    In a new table bigint and numeric are only what comes back as it is written; 007, 1.50 and 1e5 stay text.
    """
    source = ctx.state.databases.get(database)
    form = CsvFormat(delimiter, header, ctx.state.settings.max_value)
    return await writing.import_csv(ctx, source, table, (csv, file), form)

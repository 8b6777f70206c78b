"""Exports all rows of a query to a file. Rows are written while they arrive, so only a few are in memory."""

from functools import partial

from anyio import to_thread

from servers.common.sql.query.formats import ExportFile, ExportRequest
from servers.common.sql.query.query import Query

from ..engine.deadline import Deadline
from ..engine.pool import Pool
from ..values import Codec
from .columns import ColumnTypes
from .reading import Row, bind, check


async def write_export(
    pool: Pool, query: Query, request: ExportRequest, columns: ColumnTypes, deadline: Deadline
) -> tuple[int, int]:
    """Write all rows of the `query`, and return their number and the file's size in bytes. Raises SqlError."""
    sql, values = bind(query)
    statement = await check(sql)
    async with pool.transaction(deadline) as link:
        result_columns = await link.describe(statement.body, deadline=deadline)
        described = await columns.describe(result_columns, partial(link.ask, deadline=deadline))
        file = ExportFile(request, Codec(described.types))

        async def on_rows(rows: list[Row]) -> None:
            await to_thread.run_sync(file.add, rows)
            deadline.report(file.rows, None, f"{file.rows:,} rows")

        with file:
            file.begin(described.names)
            await link.run(statement.body, values, deadline=deadline, on_rows=on_rows)
    return file.rows, file.bytes

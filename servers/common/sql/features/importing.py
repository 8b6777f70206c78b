"""The tool that imports the rows of a file into a table."""

from functools import partial
from typing import Annotated, Literal

from anyio import to_thread
from pydantic import Field, WithJsonSchema

from shared import Features

from ...arguments import OptionalText
from ..dialect import Dialect
from ..errors import SqlError
from ..importing.files import Opener, file_opener, find_version, text_opener
from ..importing.imports import Import, format_import
from ..importing.tables import FormatRequest
from .context import Ctx, DatabaseArgument, SqlServerState, TableName
from .writing import check_writes, require_files, run_with_consent


def declare(dialect: Dialect) -> Features[SqlServerState]:
    """Declare the tool, with the terms of the `dialect` in its description. It is offered if a database may be
    changed."""
    features = Features[SqlServerState]()

    @features.tool(unavailable=check_writes(dialect), destructive=False, task="optional")
    @dialect.fill_words
    async def import_csv(
        ctx: Ctx,
        table_name: TableName,
        csv: Annotated[OptionalText, Field(description="the CSV itself")] = None,
        file: Annotated[
            OptionalText, Field(description="instead of csv: a file in the operator's directory, also .tsv or .xlsx")
        ] = None,
        preview: Annotated[bool, Field(description="only report what would be done")] = False,
        types: Annotated[
            list[Annotated[str, Field(pattern="=")]] | None,
            Field(description="NAME=TYPE of columns: text, integer, decimal, date, date dmy, timestamp, boolean"),
        ] = None,
        header: Annotated[
            bool | int | None,
            WithJsonSchema({"type": "integer"}),
            Field(description="line with the column names; 0: none"),
        ] = None,
        delimiter: Annotated[str | None, Field(pattern=r'^[^"\r\n]$')] = None,
        quote: Annotated[str | None, Field(pattern=r"^[^\r\n]?$", description="empty: there are no quotes")] = None,
        decimal: Annotated[Literal[".", ","] | None, Field(description="decimal mark")] = None,
        nulls: Annotated[list[str] | None, Field(description="fields that are NULL in every column")] = None,
        encoding: OptionalText = None,
        sheet: Annotated[OptionalText, Field(description="of a workbook")] = None,
        database: DatabaseArgument = None,
    ) -> str:
        """Import the rows of a file into a table, all or none; creates the table if there is none.

        Options that are not given are detected and reported. Numbers become {numbers}; 007, phone numbers and mixed columns stay {text}.
        """  # noqa: E501 - clients receive the line as it is
        header_line = False if header == 0 else header  # None: detect it
        format_request = FormatRequest(
            delimiter, quote, encoding, header_line, decimal, nulls, types or (), sheet, ctx.state.settings.max_value
        )
        description, opener, version = await _open_source(ctx, csv, file, table_name)
        import_rows = partial(
            ctx.state.databases.get(database).import_csv, Import(table_name, opener, format_request, preview)
        )
        # The user sees `description`, but consents to the complete import, including its contents and format.
        return format_import(
            await run_with_consent(
                ctx, ctx.state.databases.get(database), description, import_rows, csv, version, format_request
            )
        )

    return features


async def _open_source(ctx: Ctx, csv: str | None, file: str | None, table: str) -> tuple[str, Opener, str | None]:
    """Return a description of the import for the user, the opener of its source, and the version of the file (None
    for `csv`). Raises SqlError."""
    if not table.strip():
        # SQLite would create a table with an empty name.
        raise SqlError("bad_csv", "the table needs a name", "Pass table_name.")
    if csv is not None and file is None:
        return f"import a CSV into {table}", text_opener(csv), None
    if file is not None and csv is None:
        directory = require_files(ctx)
        version = await to_thread.run_sync(find_version, directory, file)
        return f"import {file} into {table}", file_opener(directory, file, version), version
    raise SqlError("bad_csv", "pass either csv or file")

"""The tools that change databases, and the one that backs them up."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, WithJsonSchema

from shared import Data, Features

from ..engine.database import Database
from ..engine.spans import statement_span
from ..errors import SqliteError
from ..query.query import Parameters, bind
from ..write import execution, importing
from ..write.backups import back_up, format_backup
from ..write.csvs import CsvFormat, open_file, open_text
from ..write.execution import ResponseLimits, WriteResult
from ..write.importing import Import, format_import
from ..write.session import Consent, Figures, Session, write
from ..write.statements import Statement
from .context import (
    SCALAR,
    Ctx,
    DatabaseArgument,
    Opened,
    check_files,
    check_writable,
    job_of,
    limit_answer,
    tell_progress,
    turn_to_read,
    turn_to_write,
)

T = TypeVar("T")
OneOrSeveral = (
    Annotated[str, Field(description="one statement")]
    | Annotated[list[str], Field(min_length=1, max_length=500, description="several: all are done, or none")]
)
OfEach = Annotated[
    list[Any] | dict[str, Any],
    WithJsonSchema({"type": "array", "items": {"anyOf": [*SCALAR["anyOf"], {"type": "array", "items": SCALAR}]}}),
    Field(description="as in read_query; for several statements one list for each"),
]

_FRAME = 2_000
"""Bytes of an answer around what it holds."""
_SHOWN = 1_000
"""Characters of SQL that a question shows."""

features = Features[Opened]()


@features.tool(title="Write query", unavailable=check_writable, task="optional")
async def write_query(
    ctx: Ctx,
    query: OneOrSeveral,
    parameters: OfEach = [],  # noqa: B006 - pydantic copies it
    dry_run: Annotated[bool, Field(description="show what would change, and change nothing")] = False,
    max_rows: Annotated[int | None, Field(ge=1, description="rows at most, of SELECT and RETURNING")] = None,
    database: DatabaseArgument = None,
) -> Data[WriteResult]:
    """Run statements that change data or the schema, in one transaction: all is committed, or nothing."""
    source = ctx.state.databases.get(database)
    statements = _make_statements(query, parameters)
    if not dry_run:
        return await execute_statements(ctx, source, statements, max_rows)
    work = partial(execution.dry_run, statements, _limit_response(ctx, max_rows))
    done = await _write(ctx, source, statements[0].sql, work)
    return Data(done.value, done.text)


@features.tool(title="Create table", unavailable=check_writable, destructive=False)
async def create_table(
    ctx: Ctx,
    query: Annotated[str, Field(description="one CREATE TABLE statement")],
    database: DatabaseArgument = None,
) -> str:
    """Make a table with CREATE TABLE, and do nothing else; write_query makes all the rest of a schema."""
    done = await execute_statements(ctx, ctx.state.databases.get(database), [Statement(query)], only_tables=True)
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

    In a new table INTEGER and REAL are only what comes back as it is written; 007, 1.50 and 1e5 stay TEXT.
    """
    source = ctx.state.databases.get(database)
    form = CsvFormat(delimiter, header, ctx.state.settings.max_value)
    if csv is not None and file is None:
        what, text = f"import a CSV into {table}", open_text(csv)
    elif file is not None and csv is None:
        what, text = f"import {file} into {table}", open_file(_require_files(ctx), file)
    else:
        raise SqliteError("bad_csv", "give either csv or file")
    act = partial(importing.import_csv, Import(table, text, form))
    return format_import(await run_agreed(ctx, source, what, act, csv, form))


@features.tool(title="Back up", unavailable=check_files, destructive=False, task="optional")
async def backup(ctx: Ctx, database: DatabaseArgument = None) -> str:
    """Copy a database, while it is in use, to a new file in the operator's directory, and check the copy."""
    source = ctx.state.databases.get(database)
    work = partial(back_up, _require_files(ctx), source.name)
    if ctx.settings.confirm:
        await ctx.confirm(f"Back up {source.name} to a new file in the directory of files?")
    job = job_of(ctx)
    async with turn_to_read(ctx, source):
        return format_backup(await tell_progress(ctx, job, partial(source.read, work, job)))


async def execute_statements(
    ctx: Ctx,
    source: Database,
    statements: Sequence[Statement],
    max_rows: int | None = None,
    *,
    only_tables: bool = False,
) -> Data[WriteResult]:
    """What the statements did, in one transaction, once the user has agreed where the operator wants that."""
    what = ";\n".join(_format_statement(statement) for statement in statements)
    act = partial(execution.execute, statements, _limit_response(ctx, max_rows), only_tables)
    done = await run_agreed(ctx, source, what, act)
    return Data(done.value, done.text)


def _limit_response(ctx: Ctx, max_rows: int | None) -> ResponseLimits:
    return ResponseLimits(limit_answer(ctx, max_rows), ctx.budget.result_bytes - _FRAME)


def _require_files(ctx: Ctx) -> Path:
    files: Path | None = ctx.state.settings.files
    if files is None:
        raise SqliteError(
            "refused", "this server has no directory of files", "The operator can name one with --files."
        )
    return files


def _make_statements(query: str | list[str], parameters: list[Any] | dict[str, Any]) -> list[Statement]:
    if isinstance(query, str):
        return [Statement(query, bind(parameters))]
    if not parameters:
        return [Statement(sql) for sql in query]
    if not isinstance(parameters, list) or len(parameters) != len(query):
        reason = f"for {len(query)} statements, parameters is no list of {len(query)} entries"
        raise SqliteError(
            "bad_parameters", reason, "Give one list or object for each statement; [] where it has none."
        )
    return [Statement(sql, _bind_one(given)) for sql, given in zip(query, parameters, strict=True)]


def _bind_one(given: Any) -> Parameters:
    if not isinstance(given, list | dict):
        raise SqliteError("bad_parameters", "the entry of a statement is neither a list nor an object of parameters")
    return bind(given)


async def run_agreed(
    ctx: Ctx, source: Database, what: str, act: Callable[[Consent, Session], T | Figures], *unsaid: object
) -> T:
    """What `act` does, once the user has agreed to it where the operator wants that: to `what`, which is shown, with
    all that is `unsaid`. Raises ToolError where the user does not agree, or can't be asked."""
    limit = ctx.state.settings.unasked_rows
    done = await _write(ctx, source, what, partial(act, Consent(limit)))
    if not isinstance(done, Figures):
        return done
    await ctx.confirm(f"Change {source.name}? {done}:\n{_shorten(what)}", what, unsaid, done)
    done = await _write(ctx, source, what, partial(act, Consent(limit, done)))
    assert not isinstance(done, Figures)
    return done


async def _write(ctx: Ctx, source: Database, what: str, work: Callable[[Session], T]) -> T:
    job = job_of(ctx)
    async with turn_to_write(ctx, source):
        with statement_span(what, source.name):
            return await tell_progress(ctx, job, partial(write, source, work, job))


def _format_statement(statement: Statement) -> str:
    """A statement with its parameters, for the user to read."""
    return f"{statement.sql} -- {statement.parameters!r}" if statement.parameters else statement.sql


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} [cut: {len(text):,} characters]"

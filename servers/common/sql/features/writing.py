"""Changes: asked for where the operator wants that, made in one transaction, and told in both forms."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, WithJsonSchema

from shared import Data

from ..database import Database
from ..errors import SqlError
from ..jobs import Job
from ..query.query import Parameters
from ..spans import statement_span
from ..write.consent import Consent, Figures
from ..write.csvs import CsvFormat, open_file, open_text
from ..write.imports import Import, format_import
from ..write.results import ResponseLimits, Statement, WriteResult
from .context import SCALAR, Ctx, job_of, limit_answer, tell_progress, turn_to_write

T = TypeVar("T")
Act = Callable[[Consent, Job], Awaitable[T | Figures]]
"""Does something with the consent that there is, or gives figures to ask with."""
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


async def write(
    ctx: Ctx,
    source: Database,
    query: str | list[str],
    parameters: list[Any] | dict[str, Any],
    dry_run: bool,
    max_rows: int | None,
) -> Data[WriteResult]:
    """What the statements did, or would do. Raises SqlError."""
    statements = _make_statements(source, query, parameters)
    if not dry_run:
        return await execute_statements(ctx, source, statements, max_rows)
    work = partial(source.dry_run, statements, limit_response(ctx, max_rows))
    done = await _write(ctx, source, statements[0].sql, work)
    return Data(done.value, done.text)


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
    limits = limit_response(ctx, max_rows)

    async def act(consent: Consent, job: Job) -> Any:
        return await source.execute(statements, limits, consent, job, only_tables=only_tables)

    done = await run_agreed(ctx, source, what, act)
    return Data(done.value, done.text)


async def import_csv(
    ctx: Ctx, source: Database, table: str, given: tuple[str | None, str | None], form: CsvFormat
) -> str:
    """How many rows a CSV, or the file of that name, had for a table. Raises SqlError."""
    csv, file = given
    if csv is not None and file is None:
        what, text = f"import a CSV into {table}", open_text(csv)
    elif file is not None and csv is None:
        what, text = f"import {file} into {table}", open_file(require_files(ctx), file)
    else:
        raise SqlError("bad_csv", "give either csv or file")
    act = partial(source.import_csv, Import(table, text, form))
    return format_import(await run_agreed(ctx, source, what, act, csv, form))


def require_files(ctx: Ctx) -> Path:
    """The operator's directory of files. Raises SqlError `refused` where there is none."""
    files: Path | None = ctx.state.settings.files
    if files is None:
        raise SqlError("refused", "this server has no directory of files", "The operator can name one with --files.")
    return files


def limit_response(ctx: Ctx, max_rows: int | None) -> ResponseLimits:
    """What the answer to statements may have."""
    return ResponseLimits(limit_answer(ctx, max_rows), ctx.budget.result_bytes - _FRAME)


def _make_statements(
    source: Database, query: str | list[str], parameters: list[Any] | dict[str, Any]
) -> list[Statement]:
    if isinstance(query, str):
        return [Statement(query, source.bind(parameters))]
    if not parameters:
        return [Statement(sql) for sql in query]
    if not isinstance(parameters, list) or len(parameters) != len(query):
        reason = f"for {len(query)} statements, parameters is no list of {len(query)} entries"
        raise SqlError("bad_parameters", reason, "Give one list or object for each statement; [] where it has none.")
    return [Statement(sql, _bind_one(source, given)) for sql, given in zip(query, parameters, strict=True)]


def _bind_one(source: Database, given: Any) -> Parameters:
    if not isinstance(given, list | dict):
        raise SqlError("bad_parameters", "the entry of a statement is neither a list nor an object of parameters")
    return source.bind(given)


async def run_agreed(ctx: Ctx, source: Database, what: str, act: Act[T], *unsaid: object) -> T:
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


async def _write(ctx: Ctx, source: Database, what: str, work: Callable[[Job], Awaitable[T]]) -> T:
    job = job_of(ctx)
    async with turn_to_write(ctx, source):
        with statement_span(what, source):
            return await tell_progress(ctx, job, partial(work, job))


def _format_statement(statement: Statement) -> str:
    """A statement with its parameters, for the user to read."""
    return f"{statement.sql} -- {statement.parameters!r}" if statement.parameters else statement.sql


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} [cut: {len(text):,} characters]"

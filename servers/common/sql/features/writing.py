"""The tools that change databases.

If the operator requires it, the user must confirm changes first. Each call is one transaction. Its result has two
forms, text and data.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from anyio import to_thread
from pydantic import Field, WithJsonSchema

from shared import Data, Features

from ..database import Database
from ..dialect import Dialect
from ..errors import SqlError
from ..jobs import Job
from ..query.query import Parameters
from ..query.spans import statement_span
from ..settings import SqlSettings
from ..write.consent import Consent, Figures
from ..write.results import ResponseLimits, Statement, WriteResult
from .context import (
    NO_PARAMETERS,
    SCALAR,
    Ctx,
    DatabaseArgument,
    SqlServerState,
    answer_limits,
    job_of,
    report_progress,
    turn_to_write,
)

T = TypeVar("T")
Action = Callable[[Consent, Job], Awaitable[T | Figures]]
"""Changes a database if the consent covers the changes; otherwise changes nothing, and returns the figures that the
user must confirm."""
_MAX_STATEMENTS = 500
"""Maximum number of statements of one call."""
StatementsArgument = Annotated[
    str | Annotated[list[str], Field(min_length=1, max_length=_MAX_STATEMENTS)],
    WithJsonSchema({"type": "string"}),
    Field(description="one statement, or several separated by ;"),
]
"""One statement or a script. A list of statements is accepted as well, though the schema does not mention it."""
ParametersArgument = Annotated[
    list[Any] | dict[str, Any],
    WithJsonSchema({"type": "array", "items": {"anyOf": [*SCALAR["anyOf"], {"type": "array", "items": SCALAR}]}}),
    Field(description="as in read_query; with several statements, one list for each"),
]

_FRAME_BYTES = 2_000
"""Maximum size of a result without its contents, in bytes."""
_THREAD_CHARACTERS = 20_000
"""Number of characters above which a script is split in a thread."""
_MAX_NAME = 100
"""Maximum number of characters of a name in an error."""
_MAX_SHOWN = 1_000
"""Maximum number of characters of SQL that the user sees in the question."""


def declare(dialect: Dialect) -> Features[SqlServerState]:
    """Declare the tools. They are offered if a database may be changed; `dialect` has the reason if none may be."""
    features = Features[SqlServerState]()

    check_writable = check_writes(dialect)

    @features.tool(unavailable=check_writable, task="optional")
    async def write_query(
        ctx: Ctx,
        query: StatementsArgument,
        parameters: ParametersArgument = NO_PARAMETERS,
        dry_run: Annotated[bool, Field(description="only show what would change")] = False,
        max_rows: Annotated[int | None, Field(ge=1, description="of SELECT and RETURNING")] = None,
        database: DatabaseArgument = None,
    ) -> Data[WriteResult]:
        """Run statements that change data or the schema, in one transaction: all are committed, or none."""
        source = ctx.state.databases.get(database)
        prepare = partial(_make_statements, ctx.state.dialect, source, query, parameters)
        # Splitting a long script takes a while.
        is_long = isinstance(query, str) and len(query) > _THREAD_CHARACTERS
        statements = await to_thread.run_sync(prepare) if is_long else prepare()
        if not dry_run:
            return await execute_statements(ctx, source, statements, max_rows)
        work = partial(source.dry_run, statements, response_limits(ctx, max_rows))
        result = await _write(ctx, source, statements[0].sql, work)
        return Data(result.value, result.text)

    @features.tool(unavailable=check_writable, destructive=False)
    async def create_table(ctx: Ctx, query: str, database: DatabaseArgument = None) -> str:
        """Create a table with one CREATE TABLE statement; write_query makes other schema changes."""
        source = ctx.state.databases.get(database)
        result = await execute_statements(ctx, source, [Statement(query)], only_tables=True)
        return result.text

    return features


def check_writes(dialect: Dialect) -> Callable[[SqlSettings], str | None]:
    """Return a function for the option `unavailable` of tools that change databases. It takes the settings, and
    returns the reason why the tools are not offered, or None if they are."""
    return lambda settings: None if settings.writes else f"read_only: {dialect.read_only}"


async def execute_statements(
    ctx: Ctx,
    source: Database,
    statements: Sequence[Statement],
    max_rows: int | None = None,
    *,
    only_tables: bool = False,
) -> Data[WriteResult]:
    """Run the statements in one transaction. If the operator requires it, ask the user first."""
    # The user must see the parameters too.
    description = ";\n".join(
        f"{statement.sql} -- {statement.parameters!r}" if statement.parameters else statement.sql
        for statement in statements
    )
    limits = response_limits(ctx, max_rows)

    async def action(consent: Consent, job: Job) -> Any:
        return await source.execute(statements, limits, consent, job, only_tables=only_tables)

    result = await run_with_consent(ctx, source, description, action)
    return Data(result.value, result.text)


def require_files(ctx: Ctx) -> Path:
    """Return the directory from `--files`. Raises SqlError with code `refused` if it is not set."""
    files: Path | None = ctx.state.settings.files
    if files is None:
        raise SqlError("refused", "this server has no directory for files", "The operator can name one with --files.")
    return files


def response_limits(ctx: Ctx, max_rows: int | None) -> ResponseLimits:
    """Return the limits of the result of statements that change a database."""
    return ResponseLimits(answer_limits(ctx, max_rows), ctx.budget.result_bytes - _FRAME_BYTES)


def _make_statements(
    dialect: Dialect, source: Database, query: str | list[str], parameters: list[Any] | dict[str, Any]
) -> list[Statement]:
    """Return the statements of a call with their parameters. A script is split into statements. Raises SqlError."""
    parts = [*dialect.split_statements(query)] if isinstance(query, str) else query
    if isinstance(query, str) and len(parts) < 2:
        return [Statement(query, source.bind(parameters))]
    if len(parts) > _MAX_STATEMENTS:
        raise SqlError("too_large", f"there are more than {_MAX_STATEMENTS} statements", "Run fewer at once.")
    if not parameters:
        return [Statement(sql) for sql in parts]
    if isinstance(parameters, dict) and isinstance(query, str):
        # Each statement of a script gets the parameters that it uses.
        values = {name.lstrip(":@$"): value for name, value in parameters.items()}
        names = [{name.lstrip(":@$") for name in dialect.find_parameters(sql)} for sql in parts]
        if unknown := values.keys() - set().union(*names):
            raise SqlError("bad_parameters", f"no statement has :{min(unknown)[:_MAX_NAME]}")
        return [
            Statement(sql, source.bind({name: value for name, value in values.items() if name in used}))
            for sql, used in zip(parts, names, strict=True)
        ]
    if not isinstance(parameters, list) or len(parameters) != len(parts):
        reason = f"for {len(parts)} statements, parameters must be a list of {len(parts)} entries"
        raise SqlError(
            "bad_parameters",
            reason,
            "Pass one list or object per statement; use [] for a statement without parameters.",
        )
    return [Statement(sql, _bind_one(source, values)) for sql, values in zip(parts, parameters, strict=True)]


def _bind_one(source: Database, values: Any) -> Parameters:
    if not isinstance(values, list | dict):
        raise SqlError("bad_parameters", "the entry of a statement is neither a list nor an object of parameters")
    return source.bind(values)


async def run_with_consent(ctx: Ctx, source: Database, description: str, action: Action[T], *unshown: object) -> T:
    """Run `action`. If the operator requires it, ask the user first.

    The user sees `description`, but consents to `unshown` as well: if one of them differs when the call is repeated,
    the user is asked again. Raises ToolError if the user declines or can't be asked.
    """
    limit = ctx.state.settings.rows_without_consent
    result = await _write(ctx, source, description, partial(action, Consent(limit)))
    if not isinstance(result, Figures):
        return result
    shown_text = description[:_MAX_SHOWN]
    if len(description) > _MAX_SHOWN:
        shown_text += f" [truncated: {len(description):,} characters]"
    await ctx.confirm(f"Change {source.name}? {result}:\n{shown_text}", description, unshown, result)
    result = await _write(ctx, source, description, partial(action, Consent(limit, result)))
    assert not isinstance(result, Figures)
    return result


async def _write(ctx: Ctx, source: Database, description: str, work: Callable[[Job], Awaitable[T]]) -> T:
    job = job_of(ctx)
    async with turn_to_write(ctx, source):
        with statement_span(description, source.system, source.name):
            return await report_progress(ctx, job, partial(work, job))

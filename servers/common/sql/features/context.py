"""What all features share: the state of a running server, common arguments of tools, the limits of a result, and the
turns in which calls use a database."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Annotated, Any, TypeVar

import anyio
from pydantic import AliasChoices, Field, WithJsonSchema

from shared import Context
from shared.concurrency import background
from shared.server.dispatch.turns import Turns

from ...arguments import OptionalText
from ..database import Database, Databases
from ..dialect import Dialect
from ..errors import SqlError
from ..exports import Exports
from ..insights import Memos
from ..jobs import Job
from ..query.pages import AnswerLimits
from ..settings import SqlSettings
from ..watch import DatabaseWatch

_REPORT_SECONDS = 0.5
"""Seconds between progress reports."""

T = TypeVar("T")

# The schema of a parameter that clients get. Parameters may also be null or objects, but the schema does not say so,
# because some hosts reject schemas with null, with any type, or with objects whose keys are unknown.
SCALAR = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}

PARAMETERS = WithJsonSchema({"type": "array", "items": SCALAR})
"""The schema of the parameters of one statement."""
TableName = Annotated[str, Field(validation_alias=AliasChoices("table_name", "table"))]
"""The name of a table. `import_csv` formerly called this argument `table`, so that name is still accepted."""
DatabaseArgument = OptionalText
"""The name of a database. It is necessary if there are several; the error for a missing name lists them."""
NO_PARAMETERS: Any = ()
"""The default of an argument that is a list. It is a tuple, because pydantic would copy a list for each call."""
MaxRowsArgument = Annotated[int | None, Field(ge=1)]
CursorArgument = Annotated[OptionalText, Field(description="from a truncated result; same query")]
SAME_PARAMETERS = Field(description="as in read_query")


@dataclass(frozen=True, slots=True)
class SqlServerState:
    """The objects that a server keeps while it runs."""

    databases: Databases[Database]
    watch: DatabaseWatch[Any]
    exports: Exports
    settings: SqlSettings
    memos: Memos
    turns: Mapping[str, tuple[Turns, Turns]]
    """For each database, by name: the turns to read it, and the turns to change it."""
    dialect: Dialect


Ctx = Context[SqlServerState]


def answer_limits(ctx: Ctx, max_rows: int | None) -> AnswerLimits:
    """Return the limits of an answer. The client has requested at most `max_rows` rows."""
    settings = ctx.state.settings
    return AnswerLimits(_row_limit(ctx, max_rows), min(settings.max_page, ctx.budget.page_bytes), settings.max_cell)


def result_limits(ctx: Ctx, max_rows: int | None) -> AnswerLimits:
    """Return the limits of an answer that contains its rows twice, as text and as data.

    A host shows only one of the two forms to its model. The larger form is at most two thirds of both together, so
    both may have 3/2 of the bytes that the model may get (`page_bytes`).
    """
    settings, budget = ctx.state.settings, ctx.budget
    max_bytes = min(settings.max_page, budget.result_bytes, budget.page_bytes * 3 // 2)
    return AnswerLimits(_row_limit(ctx, max_rows), max_bytes, settings.max_cell)


def _row_limit(ctx: Ctx, max_rows: int | None) -> int:
    maximum = ctx.state.settings.max_rows
    return maximum if max_rows is None else min(max_rows, maximum)


def job_of(ctx: Ctx) -> Job:
    """Return the job of a call. A task may run as long as the client keeps it; any other call has the timeout of a
    statement."""
    return Job(ctx.budget.seconds if ctx.may_be_task else ctx.state.settings.timeout)


async def report_progress(ctx: Ctx, job: Job, work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `work`. While it runs, report the progress of the `job` to the client."""

    async def report() -> None:
        reported = 0
        while True:
            await anyio.sleep(_REPORT_SECONDS)
            if job.progress is not None and job.progress.done > reported:
                reported, total, words = job.progress
                await ctx.progress(reported, total, words)

    async with background() as tasks:
        tasks.start_soon(report)
        return await work()


def turn_to_read(ctx: Ctx, database: Database) -> AbstractAsyncContextManager[None]:
    """Wait until it is the client's turn to read, and hold the turn during the block. One client can't occupy all
    turns of a database."""
    return _ReportingTurn(ctx, database, ctx.state.turns[database.name][0])


def turn_to_write(ctx: Ctx, database: Database) -> AbstractAsyncContextManager[None]:
    """Wait until it is the client's turn to change the database, and hold the turn during the block."""
    return _ReportingTurn(ctx, database, ctx.state.turns[database.name][1])


class _ReportingTurn(AbstractAsyncContextManager[None]):
    """A turn to use a database. At its end, it sends the client a log message if the database was locked."""

    def __init__(self, ctx: Ctx, database: Database, turns: Turns) -> None:
        self._ctx, self._database, self._turn = ctx, database, ctx.turn(turns)

    async def __aenter__(self) -> None:
        await self._turn.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._turn.__aexit__(kind, error, traceback)
        if isinstance(error, SqlError) and error.code == "busy":
            limit = f"{self._database.lock_timeout:g} s"
            text = f"the database {self._database.name!r} is locked by another process; waited {limit} for it"
            await self._ctx.log("warning", text, self._ctx.state.dialect.name)

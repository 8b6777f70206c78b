"""The state that all features share: the open objects of a server's run, the limits of a result, and turns."""

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

# The schema of a parameter for hosts and models. Some hosts can't convey null, a value of any type, or an object
# whose names are not known; these are accepted all the same.
SCALAR = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}

PARAMETERS = WithJsonSchema({"type": "array", "items": SCALAR})
"""The schema of the parameters of one statement."""
TableName = Annotated[str, Field(validation_alias=AliasChoices("table_name", "table"))]
"""The name of a table. Formerly called `table` in `import_csv`, and `table_name` elsewhere."""
DatabaseArgument = str | None
"""The name of a database, if there are several. Without it the error lists the names."""
NO_PARAMETERS: Any = ()
"""The default for a list: a tuple, because pydantic would copy an empty list for each call."""
MaxRowsArgument = Annotated[int | None, Field(ge=1)]
CursorArgument = Annotated[str | None, Field(description="from a truncated result; same query")]
SAME_PARAMETERS = Field(description="as in read_query")


@dataclass(frozen=True, slots=True)
class SqlServerState:
    """The open objects of one run of a server."""

    databases: Databases[Database]
    watch: DatabaseWatch[Any]
    exports: Exports
    settings: SqlSettings
    memos: Memos
    turns: Mapping[str, tuple[Turns, Turns]]
    """For each database, by name, the turns to read it and the turns to change it."""
    dialect: Dialect


Ctx = Context[SqlServerState]


def limit_answer(ctx: Ctx, max_rows: int | None) -> AnswerLimits:
    """Return the limits of one result for which the caller requests `max_rows`."""
    settings = ctx.state.settings
    return AnswerLimits(_row_limit(ctx, max_rows), min(settings.max_page, ctx.budget.page_bytes), settings.max_cell)


def limit_rows(ctx: Ctx, max_rows: int | None) -> AnswerLimits:
    """Return the limits of a result with rows, which contains them both as text and as data. A host shows one of the
    two to its model, and the larger is at most two thirds of both together."""
    settings, budget = ctx.state.settings, ctx.budget
    both = min(settings.max_page, budget.result_bytes, budget.page_bytes * 3 // 2)
    return AnswerLimits(_row_limit(ctx, max_rows), both, settings.max_cell)


def _row_limit(ctx: Ctx, max_rows: int | None) -> int:
    maximum = ctx.state.settings.max_rows
    return maximum if max_rows is None else min(max_rows, maximum)


def job_of(ctx: Ctx) -> Job:
    """Return the job of a call. A task may run as long as the client keeps it, any other call for the time limit of a
    statement."""
    return Job(ctx.budget.seconds if ctx.may_be_task else ctx.state.settings.timeout)


async def report_progress(ctx: Ctx, job: Job, work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `work`, and meanwhile report the progress of the `job` to the client. Raises SqlError like
    `work`."""

    async def report() -> None:
        reported = 0
        while True:
            await anyio.sleep(_REPORT_SECONDS)
            if job.reached is not None and job.reached.done > reported:
                reported, total, words = job.reached
                await ctx.progress(reported, total, words)

    async with background() as tasks:
        tasks.start_soon(report)
        return await work()


def turn_to_read(ctx: Ctx, database: Database) -> AbstractAsyncContextManager[None]:
    """Wait until it is this client's turn to read. One connection stays available to others."""
    return _ReportingTurn(ctx, database, ctx.state.turns[database.name][0])


def turn_to_write(ctx: Ctx, database: Database) -> AbstractAsyncContextManager[None]:
    """Wait until it is this client's turn to change the database."""
    return _ReportingTurn(ctx, database, ctx.state.turns[database.name][1])


class _ReportingTurn(AbstractAsyncContextManager[None]):
    """A turn that notifies the user afterwards if the database was locked."""

    def __init__(self, ctx: Ctx, database: Database, turns: Turns) -> None:
        self._ctx, self._database, self._turn = ctx, database, ctx.turn(turns)

    async def __aenter__(self) -> None:
        await self._turn.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._turn.__aexit__(kind, error, traceback)
        if isinstance(error, SqlError) and error.code == "busy":
            limit = f"{self._database.lock_seconds:g} s"
            text = f"the database {self._database.name!r} is locked by another process; waited {limit} for it"
            await self._ctx.log("warning", text, self._ctx.state.dialect.name)

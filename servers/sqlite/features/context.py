"""What all features work on, and the arguments that several tools take: types with the words that tell a model how to
use them.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import anyio
from pydantic import Field, WithJsonSchema

from shared import Context
from shared.server.thread_turns import Turns

from ..engine.database import Database, Databases
from ..engine.limits import Job
from ..errors import SqliteError
from ..exports import Exports
from ..query.pages import AnswerLimits
from ..query.snapshots import Snapshots
from ..settings import Settings
from ..watch.watch import Watch

if TYPE_CHECKING:
    from .insights import Memos

LOGGER = "sqlite"
"""Who speaks in log messages."""
RESULT_APP, SCHEMA_APP = "ui://sqlite/result", "ui://sqlite/schema"
"""The pages that show rows, and a database."""
_REPORT_EVERY = 0.5
"""Seconds between two reports of progress."""

T = TypeVar("T")

# What hosts and models are told of a parameter. Some hosts can't convey null, a value of any type, or an object whose
# names are not known; whoever sends these is understood all the same.
SCALAR = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}

QueryArgument = Annotated[str, Field(description="one statement in SQLite's SQL")]
DatabaseArgument = Annotated[str | None, Field(description="its name, where there are several")]
ParametersArgument = Annotated[
    list[Any] | dict[str, Any],
    WithJsonSchema({"type": "array", "items": SCALAR}),
    Field(description="values for ?, in order; write NULL and blobs into the statement"),
]
MaxRowsArgument = Annotated[int | None, Field(ge=1, description="rows at most")]
CursorArgument = Annotated[str | None, Field(description="goes on after an answer that was cut; same query")]


@dataclass(frozen=True, slots=True)
class Opened:
    """What one run of the server has open."""

    databases: Databases
    snapshots: Snapshots
    watch: Watch
    exports: Exports
    settings: Settings
    memos: "Memos"
    turns: Mapping[str, tuple[Turns, Turns]]
    """Who may read each database, and who may change it."""


Ctx = Context[Opened]


def limit_answer(ctx: Ctx, max_rows: int | None) -> AnswerLimits:
    """What one answer may have, where the caller asks for `max_rows`."""
    settings = ctx.state.settings
    rows = settings.max_rows if max_rows is None else min(max_rows, settings.max_rows)
    return AnswerLimits(rows, min(settings.max_page, ctx.budget.result_bytes), settings.max_cell)


def job_of(ctx: Ctx) -> Job:
    """The work of a call: a task takes as long as the client has it kept, all else as long as a statement."""
    return Job(ctx.budget.seconds if ctx.may_be_task else ctx.state.settings.timeout)


async def tell_progress(ctx: Ctx, job: Job, work: Callable[[], Awaitable[T]]) -> T:
    """What `work` gives; meanwhile the client is told how far the `job` is. Raises SqliteError as `work` does."""
    found: T | SqliteError
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_report, ctx, job)
        try:
            found = await work()
        except SqliteError as error:
            found = error
        finally:
            tasks.cancel_scope.cancel()
    if isinstance(found, SqliteError):
        # Raised here, since a task group would wrap it.
        raise found
    return found


async def _report(ctx: Ctx, job: Job) -> None:
    told = 0
    while True:
        await anyio.sleep(_REPORT_EVERY)
        if job.reached is not None and job.reached.done > told:
            told, total, words = job.reached
            await ctx.progress(told, total, words)


def turn_to_read(ctx: Ctx, database: Database) -> AbstractAsyncContextManager[None]:
    """Waits until it is this client's turn to read. It leaves a connection for others."""
    return _ReportingTurn(ctx, database, ctx.state.turns[database.name][0])


def turn_to_write(ctx: Ctx, database: Database) -> AbstractAsyncContextManager[None]:
    """Waits until it is this client's turn to change the database."""
    return _ReportingTurn(ctx, database, ctx.state.turns[database.name][1])


class _ReportingTurn(AbstractAsyncContextManager[None]):
    """A turn, after which the user is told where the database was locked."""

    def __init__(self, ctx: Ctx, database: Database, turns: Turns) -> None:
        self._ctx, self._database, self._turn = ctx, database, ctx.turn(turns)

    async def __aenter__(self) -> None:
        await self._turn.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._turn.__aexit__(kind, error, traceback)
        if isinstance(error, SqliteError) and error.code == "busy":
            waited = f"{self._database.limits.busy_seconds:g} s"
            text = f"the database {self._database.name!r} is locked by another process; waited {waited} for it"
            await self._ctx.log("warning", text, LOGGER)


def check_writable(settings: Settings) -> str | None:
    """Why the tools that change databases are not offered, or None where they are."""
    if settings.writes:
        return None
    return "read_only: this server was started without --allow-write, and without --db NAME=PATH:rw"


def check_files(settings: Settings) -> str | None:
    """Why the tools that need a directory of files are not offered, or None where they are."""
    return "no_files: this server was started without --files" if settings.files is None else None

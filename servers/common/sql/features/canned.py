"""Offers canned queries as tools. Tools are added and removed when their files are."""

from collections.abc import Mapping
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import anyio
from anyio.abc import TaskStatus
from pydantic import Field

from shared import Data, Opening
from shared.errors import DeclarationError
from shared.server.tools import RegisteredTool, ToolOptions, make_function

from ...notices import Notices
from ..canned import TYPES, Definition, QueryFiles, QueryParameter
from ..database import Database
from ..query.query import Query
from ..watch import watch_events
from ..write.results import Statement, WriteResult
from .context import Ctx, CursorArgument, MaxRowsArgument, SqlServerState
from .reading import QueryResult, answer_query
from .writing import execute_statements

_BLOB_SCHEMA: dict[str, Any] = {"contentEncoding": "base64"}
_PAGING = (
    Parameter("max_rows", Parameter.KEYWORD_ONLY, annotation=MaxRowsArgument, default=None),
    Parameter("cursor", Parameter.KEYWORD_ONLY, annotation=CursorArgument, default=None),
)
_SWEEP_SECONDS = 2.0
"""Seconds after which the files are checked even if there was no notice (see `servers.common.notices`)."""
_QUIET_SECONDS, _MAX_WAIT_SECONDS = 0.1, 1.0
"""Files are read when nothing has changed for the first number of seconds, or at the latest after the second
number."""


async def serve(opening: Opening, state: SqlServerState, *, task_status: TaskStatus[None]) -> None:
    """Offer the queries in the operator's directory as tools, and keep the tools up to date until cancelled. The task
    counts as started once they are offered for the first time."""
    directory = state.settings.queries
    if directory is None:
        task_status.started()
        return
    canned = _Canned(opening, state, directory)
    try:
        await canned.refresh()
        task_status.started()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch_events, Notices(), [str(directory.absolute())], lambda _: canned.noticed.set())
            await canned.run()
    finally:
        canned.offer({})


class _Canned:
    """The canned queries that are currently tools."""

    def __init__(self, opening: Opening, state: SqlServerState, directory: Path) -> None:
        self._state = state
        self._tools, self._changes = opening.features.tools, opening.changes
        self._built_in = frozenset(tool.name for tool in self._tools.all())
        self._app = state.dialect.result_app
        self._files = QueryFiles(directory, self._check, state.dialect.find_parameters)
        self._offered: Mapping[str, Definition] = {}
        self.noticed = anyio.Event()

    async def run(self) -> None:
        """Watch the files and announce changed tools, until cancelled."""
        while True:
            with anyio.move_on_after(_SWEEP_SECONDS):
                await self.noticed.wait()
            await self._wait_until_quiet()
            if await self.refresh():
                self._changes.tools()

    async def refresh(self) -> bool:
        """Offer the queries that the files now contain. Return True if they have changed."""
        definitions = {definition.name: definition for definition in await self._files.read()}
        if definitions == self._offered:
            return False
        self.offer(definitions)
        return True

    def offer(self, definitions: Mapping[str, Definition]) -> None:
        """Offer a tool for each of these definitions, and no others."""
        for name in self._offered:
            self._tools.remove(name)
        self._offered = definitions
        for definition in definitions.values():
            self._tools.add(_make_tool(definition, self._app))

    async def _wait_until_quiet(self) -> None:
        """Wait until nothing has changed for a moment, because editors write a file in several steps."""
        with anyio.move_on_after(_MAX_WAIT_SECONDS):
            while self.noticed.is_set():
                self.noticed = anyio.Event()
                with anyio.move_on_after(_QUIET_SECONDS):
                    await self.noticed.wait()

    async def _check(self, definition: Definition) -> None:
        if definition.name in self._built_in:
            raise ValueError(f"this server already has a built-in tool named {definition.name!r}")
        try:
            _make_tool(definition, self._app).entry  # noqa: B018 - it is computed lazily, and may raise
        except DeclarationError as error:
            raise ValueError(str(error)) from None
        database = self._state.databases.get(definition.database)
        await database.check_compiles(Query(definition.sql, {}), writes=definition.writable)


def _make_tool(definition: Definition, app: str) -> RegisteredTool:
    parameters = [_make_parameter(parameter) for parameter in definition.parameters]
    result_app = None if definition.writable else app
    options = ToolOptions(
        description=definition.description, read_only=not definition.writable, task="optional", app=result_app
    )
    if definition.writable:
        function = make_function(partial(_change, definition), definition.name, parameters, Data[WriteResult])
    else:
        function = make_function(
            partial(_read, definition), definition.name, [*parameters, *_PAGING], Data[QueryResult]
        )
    return RegisteredTool(function, options)


def _make_parameter(declared: QueryParameter) -> Parameter:
    field = Field(
        description=declared.description, json_schema_extra=_BLOB_SCHEMA if declared.type == "blob" else None
    )
    python_type: Any = TYPES[declared.type]
    annotation: Any = Annotated[python_type | None if declared.optional else python_type, field]
    default = declared.default if declared.optional else Parameter.empty
    return Parameter(declared.name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


async def _read(definition: Definition, ctx: Ctx, arguments: dict[str, Any]) -> Data[QueryResult]:
    source = ctx.state.databases.get(definition.database)
    return await answer_query(
        ctx, source, _make_query(source, definition, arguments), arguments["max_rows"], arguments["cursor"]
    )


async def _change(definition: Definition, ctx: Ctx, arguments: dict[str, Any]) -> Data[WriteResult]:
    source = ctx.state.databases.get(definition.database)
    query = _make_query(source, definition, arguments)
    return await execute_statements(ctx, source, [Statement(query.sql, query.parameters)])


def _make_query(source: Database, definition: Definition, arguments: dict[str, Any]) -> Query:
    values = {}
    for parameter in definition.parameters:
        value = arguments[parameter.name]
        # Databases would treat a plain string as text.
        is_blob = parameter.type == "blob" and value is not None
        values[parameter.name] = {"type": "blob", "base64": value} if is_blob else value
    return Query(definition.sql, source.bind(values))

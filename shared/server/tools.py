"""The tools of a server: their list for `tools/list`, and the data that a call needs."""

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import cached_property
from inspect import Parameter, Signature
from typing import Any, TypedDict, get_args

from ..errors import DeclarationError, ToolError, UnknownTool
from ..protocol.records import record
from ..protocol.types.base import Icon, Meta
from ..protocol.types.tools import TaskSupport, Tool, ToolAnnotations, ToolExecution
from .dispatch.context import Context
from .functions.function import Function
from .functions.location import is_own, locate_errors
from .results import Result

log = logging.getLogger("shared.server.tools")

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
MAX_DESCRIPTION = 2_048
"""Maximum size, in bytes, of a description that hosts show their models; the rest is cut off."""

Unavailable = Callable[[Any], str | None]
"""Accepts the settings, and returns the reason that a tool is not offered, or None if it is offered."""


@record
class ToolOptions:
    """The options of a declaration, in addition to the function itself. The defaults of the hints are the cautious
    values."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = False
    icons: list[Icon] | None = None
    meta: Meta | None = None
    task: TaskSupport | None = None
    """Task support: the tool may run as a task, for clients that support tasks, or runs only as a task."""
    scopes: Collection[str] | None = None
    """The scopes that a principal's token needs for a call; None for the server's reading or writing scope."""
    input_schema: dict[str, Any] | None = None
    app: str | None = None
    """The URI of the page that shows the tool's results in clients that show pages (see `extensions/apps`)."""
    unavailable: Unavailable | None = None
    at_once: Callable[..., Any] | None = None
    """A plain function that accepts the same arguments as the tool's function, and returns the same value if that is
    possible immediately, without waiting. Otherwise it returns None, and the tool's function is called. It can't be
    cancelled, and blocks other calls."""


class ToolKeywords(TypedDict, total=False):
    """The fields of `ToolOptions`, as keyword arguments of a decorator."""

    name: str | None
    title: str | None
    description: str | None
    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    icons: list[Icon] | None
    meta: Meta | None
    task: TaskSupport | None
    scopes: Collection[str] | None
    input_schema: dict[str, Any] | None
    app: str | None
    unavailable: Unavailable | None
    at_once: Callable[..., Any] | None


class RegisteredTool:
    """One tool, read from its function and its options."""

    def __init__(self, function: Callable[..., Any], options: ToolOptions) -> None:
        self.function = Function(function, "tool", Context)
        self.name = options.name or self.function.name
        self.options = options
        self.result = Result(self.function.returns, f"tool {self.name!r}")
        description = options.description or self.function.doc
        if not _NAME.fullmatch(self.name):
            raise DeclarationError(
                f"tool {self.name!r}: a name must have 1 to 128 of the characters A-Z a-z 0-9 _ . -"
            )
        if not description:
            raise DeclarationError(
                f"tool {self.name!r} needs a docstring, which is all that the model knows about it"
            )
        if len(description.encode()) > MAX_DESCRIPTION:
            raise DeclarationError(f"tool {self.name!r}: hosts truncate descriptions at {MAX_DESCRIPTION} bytes")
        if options.task not in (None, *get_args(TaskSupport)):
            known = ", ".join(map(repr, get_args(TaskSupport)))
            raise DeclarationError(f"tool {self.name!r}: task={options.task!r} is unknown; available: {known}")
        self._description = description
        if not is_own(function):
            # A type may refer to a type that is not defined yet.
            try:
                _ = self.entry
                self.function.check()
            except DeclarationError as error:
                if getattr(error.__cause__, "code", None) not in ("class-not-fully-defined", "undefined-annotation"):
                    raise

    @cached_property
    def entry(self) -> dict[str, Any]:
        """The entry for `tools/list`. Raises DeclarationError for types that have no schema."""
        options = self.options
        tool = Tool(
            name=self.name,
            title=options.title,
            description=self._description,
            icons=options.icons,
            input_schema=options.input_schema or self.function.schema,
            output_schema=self.result.schema,
            annotations=_make_annotations(options),
            execution=None if options.task is None else ToolExecution(task_support=options.task),
            meta=options.meta,
        )
        return tool.to_wire()


def _make_annotations(options: ToolOptions) -> ToolAnnotations:
    """Return the hints that differ from the protocol's defaults (2026-07-28, ToolAnnotations); the second and third
    hints have no meaning for a tool that only reads."""
    open_world = None if options.open_world else False
    if options.read_only:
        return ToolAnnotations(read_only_hint=True, open_world_hint=open_world)
    return ToolAnnotations(
        # Server directories require this hint, even if it is the default.
        destructive_hint=options.destructive,
        idempotent_hint=True if options.idempotent else None,
        open_world_hint=open_world,
    )


class Tools:
    """A server's tools by name, in the order of their declaration."""

    def __init__(self) -> None:
        self._tools: dict[str, RegisteredTool] = {}
        self.always: dict[str, RegisteredTool] = {}
        """The tools that are offered under any settings: nearly all calls are for these."""
        self.at_once: set[str] = set()
        """The names of the tools that may answer at once."""
        self.tasks_only: set[str] = set()
        """The names of the tools that run only as tasks."""

    def add(self, tool: RegisteredTool) -> None:
        """Add a tool. Raises DeclarationError if the name is taken."""
        if tool.name in self._tools:
            raise DeclarationError(f"there is already a tool {tool.name!r}")
        self._tools[tool.name] = tool
        if tool.options.unavailable is None:
            self.always[tool.name] = tool
        if tool.options.at_once is not None:
            self.at_once.add(tool.name)
        if tool.options.task == "required":
            self.tasks_only.add(tool.name)

    def remove(self, name: str) -> bool:
        """Remove a tool; return False if there was none."""
        self.always.pop(name, None)
        self.at_once.discard(name)
        self.tasks_only.discard(name)
        return self._tools.pop(name, None) is not None

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def get(self, name: str) -> RegisteredTool | None:
        """Return the tool with that name, on offer or not; None if there is none."""
        return self._tools.get(name)

    def all(self) -> list[RegisteredTool]:
        """Return every tool, on offer or not."""
        return list(self._tools.values())

    def entries(self, settings: Any) -> list[dict[str, Any]]:
        """Return the tools on offer under `settings`, as `tools/list` shows them. A tool without a schema is omitted,
        and logged."""
        tools = self.find_offered(settings)
        try:
            return [tool.entry for tool in tools]
        except DeclarationError:
            return [tool.entry for tool in tools if _has_schema(tool)]

    def find_offered(self, settings: Any) -> list[RegisteredTool]:
        """Return the tools on offer under `settings`."""
        return [
            tool
            for tool in self._tools.values()
            if tool.options.unavailable is None or tool.options.unavailable(settings) is None
        ]

    def task_support(self, name: str) -> TaskSupport | None:
        """Return the task support of the tool with that name; None if none is declared, or there is no such tool."""
        tool = self._tools.get(name)
        return None if tool is None else tool.options.task

    def find(self, name: str, settings: Any) -> RegisteredTool:
        """Return the tool with that name. Raises UnknownTool if there is none, and ToolError if it is not offered."""
        tool = self._tools.get(name)
        if tool is None:
            raise UnknownTool(f"unknown tool: {name[:100]}")
        if tool.options.unavailable is not None:
            # The model, which may have seen the tool in an earlier list, reads only errors of tools.
            reason = tool.options.unavailable(settings)
            if reason is not None:
                raise ToolError(reason)
        return tool


def _has_schema(tool: RegisteredTool) -> bool:
    try:
        with locate_errors(tool.function.declared):
            _ = tool.entry
    except DeclarationError as error:
        log.error("a tool is not listed: %s", error)
        return False
    return True


def make_function(
    run: Callable[[Context[Any], dict[str, Any]], Awaitable[Any]],
    name: str,
    parameters: Iterable[Parameter],
    returns: Any,
) -> Callable[..., Any]:
    """Return a function called `name` with these keyword parameters, which calls `run` with the call's context and
    the arguments. The result can be declared, and is then listed and checked like any handwritten function."""

    async def call(_context: Context[Any], **arguments: Any) -> Any:
        return await run(_context, arguments)

    signature_parameters = [Parameter("_context", Parameter.KEYWORD_ONLY, annotation=Context[Any]), *parameters]
    call.__name__ = name
    call.__signature__ = Signature(signature_parameters, return_annotation=returns)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in signature_parameters} | {
        "return": returns
    }
    return call

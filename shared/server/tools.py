"""The tools of a server: the entries of `tools/list`, and what a call of a tool needs."""

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
"""Maximum size, in bytes, of a description; hosts cut longer ones off."""

Unavailable = Callable[[Any], str | None]
"""A function that accepts the settings, and returns the reason why a tool is not offered, or None if it is."""


@record
class ToolOptions:
    """The options of `@tool`. The defaults of the hints (`read_only` to `open_world`) are the cautious values, except
    `open_world`."""

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
    """Whether the tool may run as a task ("optional"), or only as a task ("required"). None means that it can't."""
    scopes: Collection[str] | None = None
    """The OAuth scopes that a token needs for a call; None for the server's scope for reading or writing."""
    input_schema: dict[str, Any] | None = None
    app: str | None = None
    """The URI of the app that shows the tool's results in hosts that support MCP Apps (see `extensions/apps.py`)."""
    unavailable: Unavailable | None = None
    at_once: Callable[..., Any] | None = None
    """A plain function that accepts the same arguments as the tool's function, and returns the same value if that is
    possible at once, without waiting. If it returns None, the tool's function is called. It can't be cancelled, and
    blocks other calls while it runs."""


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
    """A declared tool."""

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
            # The entry is made now, to find errors at the declaration. It is made later if a type of the function
            # refers to a class that is not defined yet.
            try:
                _ = self.entry
                self.function.check()
            except DeclarationError as error:
                if getattr(error.__cause__, "code", None) not in ("class-not-fully-defined", "undefined-annotation"):
                    raise

    @cached_property
    def entry(self) -> dict[str, Any]:
        """The entry for `tools/list`. Raises DeclarationError if a type has no schema."""
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
    """Return the hints that differ from the protocol's defaults (2026-07-28, ToolAnnotations). The destructive and
    idempotent hints have no meaning for a tool that only reads."""
    open_world = None if options.open_world else False
    if options.read_only:
        return ToolAnnotations(read_only_hint=True, open_world_hint=open_world)
    return ToolAnnotations(
        # Directories of servers require this hint, even if it has its default value.
        destructive_hint=options.destructive,
        idempotent_hint=True if options.idempotent else None,
        open_world_hint=open_world,
    )


class Tools:
    """The tools of a server, in the order of their declaration. Some may be offered only under certain settings."""

    def __init__(self) -> None:
        self._tools: dict[str, RegisteredTool] = {}
        self.always_offered: dict[str, RegisteredTool] = {}
        """The tools that are offered under all settings, by name. Nearly all calls are for these, which need no
        further check."""
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
            self.always_offered[tool.name] = tool
        if tool.options.at_once is not None:
            self.at_once.add(tool.name)
        if tool.options.task == "required":
            self.tasks_only.add(tool.name)

    def remove(self, name: str) -> bool:
        """Remove a tool; return False if there was none."""
        self.always_offered.pop(name, None)
        self.at_once.discard(name)
        self.tasks_only.discard(name)
        return self._tools.pop(name, None) is not None

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def get(self, name: str) -> RegisteredTool | None:
        """Return the tool with that name, even if it is not offered; None if there is none."""
        return self._tools.get(name)

    def all(self) -> list[RegisteredTool]:
        """Return every tool, including those that are not offered."""
        return list(self._tools.values())

    def entries(self, settings: Any) -> list[dict[str, Any]]:
        """Return the entries for `tools/list` under `settings`. A tool that has no schema is left out, and logged."""
        tools = self.find_offered(settings)
        try:
            return [tool.entry for tool in tools]
        except DeclarationError:
            return [tool.entry for tool in tools if _has_schema(tool)]

    def find_offered(self, settings: Any) -> list[RegisteredTool]:
        """Return the tools that are offered under `settings`."""
        return [
            tool
            for tool in self._tools.values()
            if tool.options.unavailable is None or tool.options.unavailable(settings) is None
        ]

    def task_support(self, name: str) -> TaskSupport | None:
        """Return the task support of the tool with that name; None if it declares none, or does not exist."""
        tool = self._tools.get(name)
        return None if tool is None else tool.options.task

    def find(self, name: str, settings: Any) -> RegisteredTool:
        """Return the tool with that name. Raises UnknownTool if there is none, and ToolError if it is not offered."""
        tool = self._tools.get(name)
        if tool is None:
            raise UnknownTool(f"unknown tool: {name[:100]}")
        if tool.options.unavailable is not None:
            # A ToolError, which the model reads: it may know the tool from an earlier list.
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
    """Return a function called `name` with these keyword parameters and that return annotation. It calls `run` with
    the context and the arguments, and can be declared as a tool like any other function."""

    async def call(_context: Context[Any], **arguments: Any) -> Any:
        return await run(_context, arguments)

    signature_parameters = [Parameter("_context", Parameter.KEYWORD_ONLY, annotation=Context[Any]), *parameters]
    call.__name__ = name
    call.__signature__ = Signature(signature_parameters, return_annotation=returns)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in signature_parameters} | {
        "return": returns
    }
    return call

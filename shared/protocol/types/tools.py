"""Tools (2026-07-28, Server Features, Tools)."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from .base import Icon, Items, Meta, Params, Wire
from .content import ContentBlock, TextContent

TaskSupport = Literal["forbidden", "optional", "required"]
"""Whether a tool may or must run as a task."""


class ListParams(Params):
    """The params of every paginated list."""

    cursor: str | None = None


class InputParams(Params):
    """Params of a request that may take several rounds (2026-07-28, multi-round-trip requests). From the second round
    on they contain the client's answers, and the state that the server sent with its requests for input."""

    input_responses: dict[str, dict[str, Any]] = Field(default_factory=dict)
    request_state: str | None = None


class CallToolParams(InputParams):
    """The params of `tools/call`."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class ToolAnnotations(Wire):
    """Hints about the effects of a tool. Clients must not rely on them unless they trust the server."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class ToolExecution(Wire):
    """How a tool may be called (only 2025-11-25)."""

    task_support: TaskSupport | None = None


class Tool(Wire):
    """A tool as listed by `tools/list`. Schemas are JSON Schema 2020-12."""

    name: str
    title: str | None = None
    description: str | None = None
    icons: Items[Icon] | None = None
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: ToolAnnotations | None = None
    execution: ToolExecution | None = None
    meta: Meta | None = Field(default=None, alias="_meta")


class CallToolResult(Wire):
    """A tool's full result, for tools that need more than a return value can express."""

    content: Items[ContentBlock] = Field(default_factory=list)
    structured_content: Any = None
    is_error: bool | None = None
    meta: Meta | None = Field(default=None, alias="_meta")

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))


def named_tools(result: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and definition of each tool in an untrusted result of `tools/list`, except malformed tools."""
    tools = result.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
            yield name, tool

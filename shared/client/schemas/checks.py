"""The schemas of one server's listed tools, and checks of arguments and results against them."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import InvalidArguments, InvalidResult
from ...protocol.types.tools import Tool
from ...text import escape
from .schema_cost import UnusableSchema
from .schemas import CheckedSchema, load_library

MAX_TOOLS = 5_000
"""Maximum number of tools whose schemas are remembered; beyond it, the oldest is dropped."""

_log = logging.getLogger("shared.client.checks")


@dataclass(slots=True)
class _LazySchema:
    """A schema that is compiled once, when it is first needed. `checked` remains None if the schema is unusable."""

    schema: dict[str, Any]
    checked: CheckedSchema | None = None
    was_compiled: bool = False

    def find_error(self, value: object, tool: str) -> tuple[list[str], str] | None:
        try:
            if not self.was_compiled:
                self.was_compiled = True  # set first, so that an unusable schema is not compiled again
                self.checked = CheckedSchema(self.schema)
            return None if self.checked is None else self.checked.find_error(value)
        except UnusableSchema as error:
            _log.info("tool %s is not fully checked: %s", escape(tool[:100]), escape(str(error)))
            return None


class ToolChecks:
    """The schemas of the listed tools. Results are always checked against them, arguments if `arguments` is true.

    If the extra `client` is not installed, no result is checked, and creating this with `arguments` raises
    ModuleNotFoundError.
    """

    def __init__(self, *, arguments: bool) -> None:
        if arguments:
            load_library()
        self.arguments = arguments
        self._inputs: dict[str, _LazySchema] = {}
        self._outputs: dict[str, _LazySchema] = {}

    def learn(self, tools: Iterable[Tool]) -> None:
        """Remember the schemas of listed tools."""
        for tool in tools:
            _store(self._outputs, tool.name, tool.output_schema)
            if self.arguments:
                _store(self._inputs, tool.name, tool.input_schema)

    def needs_list(self, tool: str) -> bool:
        """Return True if the list of tools must be read before the arguments of `tool` can be checked."""
        return self.arguments and tool not in self._inputs

    def check_arguments(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Raise InvalidArguments if the arguments violate the schema of the `tool`."""
        schema = self._inputs.get(tool)
        error = None if schema is None else schema.find_error(arguments, tool)
        if error is not None:
            path, text = error
            raise InvalidArguments(
                f"the arguments of {tool} are invalid at {'.'.join(path) or 'the top level'}: {text}"
            )

    def check_result(self, tool: str, result: dict[str, Any]) -> None:
        """Raise InvalidResult if the result of the `tool` violates its output schema. The result of a failed call
        need not follow it (2025-11-25, Tools, Output Schema)."""
        schema = self._outputs.get(tool)
        if schema is None or result.get("isError"):
            return
        if "structuredContent" not in result:
            raise InvalidResult("tools/call", "structuredContent", f"{tool} has an output schema", result)
        error = schema.find_error(result["structuredContent"], tool)
        if error is not None:
            path, text = error
            raise InvalidResult("tools/call", ".".join(["structuredContent", *path]), text, result)


def _store(schemas: dict[str, _LazySchema], tool: str, schema: dict[str, Any] | None) -> None:
    stored = schemas.get(tool)
    if schema is None:
        schemas.pop(tool, None)
    elif stored is None or stored.schema != schema:
        schemas[tool] = _LazySchema(schema)
        if len(schemas) > MAX_TOOLS:
            del schemas[next(iter(schemas))]

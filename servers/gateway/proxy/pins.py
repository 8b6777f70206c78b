"""Compares the tools of a server with their pins, the definitions that the operator has accepted, and shows the
differences.

The operator has to evaluate the changes, line by line. A malicious server may send text that looks like other text,
or controls the terminal. So control characters and text direction marks are shown as escapes, and long lines and
differences are truncated with a note.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import ndiff
from typing import Any, NamedTuple

from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.errors import InvalidResult
from shared.extensions.apps import MIME_TYPE, UI
from shared.text import escape, format_count

from ..bridge.repairs import repair
from ..rules.names import Rules
from ..rules.pins import Pins

# Some servers list certain tools only for clients with these capabilities.
ALL_CAPABILITIES = ClientOptions(
    capabilities={
        "sampling": {},
        "elicitation": {"form": {}, "url": {}},
        "roots": {},
        "extensions": {UI: {"mimeTypes": [MIME_TYPE]}},
    },
    reconnect=False,
    cache_bytes=0,
)
"""Options of a client that declares all capabilities, but answers no requests: the server only lists its tools."""

Tool = Mapping[str, Any]


class Comparison(NamedTuple):
    """The names of the tools that the operator's rules allow, grouped by the result of the comparison with their
    pins. If nothing is pinned yet, all match."""

    matching: Sequence[str]
    changed: Sequence[str]
    new: Sequence[str]
    removed: Sequence[str]
    """The pinned tools that no longer exist."""

    @property
    def hidden(self) -> list[str]:
        """The names of the tools that are withheld from clients: the changed and the new ones."""
        return [*self.changed, *self.new]


async def list_tools(client: Client) -> list[dict[str, Any]]:
    """Return all of the server's tools, repaired like those of `serve`; none if it does not offer tools. Raises the
    same errors as a request, and InvalidResult for an entry that is not a tool."""
    if not client.server.can("tools"):
        return []
    tools: list[Any] = await client.raw.list_tools()
    for number, tool in enumerate(tools):
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            raise InvalidResult("tools/list", f"tools.{number}", "it is not an object with a name", {"tools": tools})
    # `serve` pins what it passes on. Without the repairs, a tool would differ from its pin.
    repaired: list[dict[str, Any]] = repair("tools/list", {"tools": tools})["tools"]
    return repaired


def compare(pins: Pins, tools: Iterable[Tool], rules: Rules) -> Comparison:
    """Compare those of the `tools` that the rules allow with the `pins`."""
    matches = dict[str, bool]()
    for tool in tools:
        name = tool["name"]
        matches[name] = matches.get(name, True) and (pins.is_new or pins.matches(tool))
    visible = [name for name in matches if rules.shown_name(name) is not None]
    mismatched = [name for name in visible if not matches[name]]
    return Comparison(
        [name for name in visible if matches[name]],
        [name for name in mismatched if pins.digest(name) is not None],
        [name for name in mismatched if pins.digest(name) is None],
        [name for name in pins.names if name not in matches],
    )


def accept(pins: Pins, tools: Sequence[Tool], names: Collection[str]) -> None:
    """Pin the current definitions of the tools called `names`, or of all tools if that is empty. The pins of other
    tools stay as they are; those of named tools that no longer exist are dropped. Raises OSError if the file can't be
    written."""
    current = {tool["name"]: tool for tool in tools if tool["name"] in names or not names}
    pins.record(current.values(), shows_apps=True, keep=[name for name in pins.names if names and name not in names])


MAX_LINE = 200
"""Maximum length of a line that is shown in full, in characters."""
MAX_LINES = 60
"""Maximum number of lines that are shown for one tool."""


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the differences of two definitions, as lines: for each part that differs its name, then removed lines
    with `-` and added lines with `+`."""
    lines: list[str] = []
    for part in sorted(part for part in {*before, *after} if before.get(part) != after.get(part)):
        compared = ndiff(_lines(before.get(part)), _lines(after.get(part)))
        lines += [f"{escape(part)}:", *(f"  {line}" for line in compared if line[0] in "-+")]
    return _truncate(lines)


def summary(definition: Mapping[str, Any]) -> list[str]:
    """Return what a model sees of a tool, as lines: the description, and the names of the arguments."""
    schema = definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    arguments = ", ".join(escape(str(name)) for name in properties) if isinstance(properties, dict) else ""
    lines = [*_lines(definition.get("description")), *([f"arguments: {arguments}"] if arguments else [])]
    return _truncate([f"  {line}" for line in lines])


def _lines(value: Any) -> list[str]:
    if value is None:
        return []
    text = value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    return [escape(line.expandtabs(4)) for line in text.split("\n")]


def _truncate(lines: Sequence[str]) -> list[str]:
    shown = [line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} ..." for line in lines[:MAX_LINES]]
    more = len(lines) - len(shown)
    return [*shown, f"  ... and {format_count(more, 'more line')}"] if more > 0 else shown

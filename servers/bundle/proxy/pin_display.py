"""What changed in the definition of a tool, line by line, for people who have to judge it.

What a server of others says may try to look like something else, or to be obeyed by a terminal. So control characters
and what turns the direction of writing are shown as escapes, and long lines and differences are cut and say so.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import ndiff
from typing import Any

from shared.text import escape

MAX_LINE = 200
"""Characters of a line that is shown whole."""
MAX_LINES = 60
"""Lines that are shown of the change of one tool."""


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What is another in a definition, part by part: lines that begin with `-` are gone, those with `+` came."""
    lines = [line for part in sorted({*before, *after}) for line in _of_part(part, before.get(part), after.get(part))]
    return _bounded(lines)


def summary(definition: Mapping[str, Any]) -> list[str]:
    """What a model is told of a tool: its description and its arguments."""
    schema = definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    arguments = ", ".join(escape(str(name)) for name in properties) if isinstance(properties, dict) else ""
    lines = [*_lines(definition.get("description")), *([f"arguments: {arguments}"] if arguments else [])]
    return _bounded([f"  {line}" for line in lines])


def _of_part(part: str, before: Any, after: Any) -> Iterator[str]:
    if before == after:
        return
    yield f"{escape(part)}:"
    for line in ndiff(_lines(before), _lines(after)):
        if line[0] in "-+":
            yield f"  {line}"


def _lines(value: Any) -> list[str]:
    if value is None:
        return []
    text = value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    return [escape(line.expandtabs(4)) for line in text.split("\n")]


def _bounded(lines: Sequence[str]) -> list[str]:
    shown = [line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} ..." for line in lines[:MAX_LINES]]
    more = len(lines) - len(shown)
    return [*shown, f"  ... and {more} lines more"] if more > 0 else shown

"""Writes prompts as plain text for skills, since agents don't fill in templates.

The template is rendered with the name of each required argument in brackets as its value. A list before the text
describes the arguments, so that the agent takes their values from the user's request.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from ..arguments import parse_value
from ..errors import PromptError
from ..format.definitions import Argument
from .rendering import Rendering, Text

_REQUIRED_HEAD = "Take the values in brackets below from the request, and ask for those that are missing:"
_OPTIONAL_HEAD = "If the request gives one of these, use it; otherwise leave it out:"


class _Absent(str):
    """The name of an omitted argument in brackets. It is false, so that a template treats the argument as missing."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


def write_plain_text(rendering: Rendering) -> str:
    """Return the prompt as plain text. Raises PromptError if the template can't be rendered without real values."""
    arguments = rendering.prompt.arguments
    values: dict[str, Any] = {}
    for argument in arguments:
        default = parse_value(argument, "")
        if argument.required:
            default = [_bracket(argument)] if argument.type == "list" else _bracket(argument)
        elif default == "" and argument.default is None:
            default = _Absent(_bracket(argument))
        values[argument.name] = default
    try:
        messages = rendering.render(values)
    except PromptError as error:
        reason = f"it can't be written as plain text without values for its arguments: {error.reason}"
        raise PromptError("bad_prompt", reason, error.suggestion, error.line) from None
    texts: list[str] = []
    for role, content in messages:
        # A file becomes a link, since it is put next to the SKILL.md with this text.
        body = content.text if isinstance(content, Text) else f"[{content.path}]({quote(content.path)})"
        texts.append(body if len(messages) == 1 else f"## {role}\n\n{body}")
    text = "\n\n".join(texts).strip()
    parts = [
        *_format_list(_REQUIRED_HEAD, [argument for argument in arguments if argument.required], text),
        *_format_list(_OPTIONAL_HEAD, [argument for argument in arguments if not argument.required], text),
    ]
    return "\n\n".join([*parts, "---", text]) if parts else text


def _bracket(argument: Argument) -> str:
    return f"[{argument.name}]"


def _format_list(head: str, arguments: Sequence[Argument], text: str) -> Iterator[str]:
    lines = [head, ""]
    for argument in arguments:
        name = _bracket(argument) if _bracket(argument) in text else argument.name
        parts = [" ".join((argument.description or argument.title or "Its name describes it.").split())]
        if argument.enum:
            parts.append(f"One of: {', '.join(argument.enum)}.")
        default = argument.default
        if default not in (None, "", []):
            shown = "yes" if default is True else "no" if default is False else str(default)
            parts.append(f"Otherwise: {', '.join(default) if isinstance(default, list) else shown}.")
        lines.append(f"- {name}: {' '.join(parts)}")
    if arguments:
        yield "\n".join(lines)

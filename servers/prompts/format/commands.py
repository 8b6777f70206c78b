"""Commands of Claude Code: the files of `.claude/commands`, and the placeholders `$ARGUMENTS`, `$ARGUMENTS[0]`, `$1`.

Positions count from 1, as commands always had it, unless the text has `$0` or `$ARGUMENTS[...]`: these count from 0,
and so does `$1` beside them. Each position is an argument of its own here. Nothing is executed (`!`) or read (`@`).
"""

import re
from typing import Any, NamedTuple

from servers.prompts.errors import PromptError
from servers.prompts.format.definitions import Argument, Message, Prompt, order_arguments
from servers.prompts.format.front_matter import Document
from shared.yaml import YamlMapping

PLACEHOLDER = re.compile(r"\$ARGUMENTS(?:\[([0-9])\])?(?![A-Za-z0-9_])|\$([0-9])(?![A-Za-z0-9_])")
_HINT = re.compile(r"<([^<>]{1,100})>|\[([^\[\]]{1,100})\]|(\S{1,100})")
_ALL = "arguments"
_MOST_DESCRIPTION = 2_000


def parse_command(document: Document, name: str) -> Prompt:
    """The prompt of a command, whose name is that of its file. Keys for other hosts mean nothing. Raises PromptError.

    Without a description it is described by the first line of its text.
    """
    if not document.body:
        raise PromptError("bad_prompt", "it has no text", line=document.line)
    front = document.front if document.front is not None else YamlMapping(1)
    hint = get_text(front, "argument-hint")
    first_line = document.body.splitlines()[0].lstrip("# ")
    description = get_text(front, "description") or first_line or name
    return Prompt(
        name=name,
        description=description[:_MOST_DESCRIPTION],
        arguments=find_arguments(document.body, hint),
        messages=(Message("user", "text", document.body, document.line),),
        syntax="dollar",
        hint=hint,
        allowed_tools=get_tools(front),
    )


def get_text(front: YamlMapping, key: str) -> str:
    """A text of the front matter, "" where there is none. Raises PromptError."""
    value = front.get(key, "")
    if isinstance(value, dict | list):
        raise PromptError("bad_prompt", f"{key} is no text", line=front.lines[key])
    return "" if value is None else str(value).strip()


def get_tools(front: YamlMapping) -> tuple[str, ...]:
    """The `allowed-tools`, a list or a text with commas, or with spaces, between them."""
    value: Any = front.get("allowed-tools", ())
    if isinstance(value, str):
        # A tool may have a pattern behind it, as in Bash(git add:*), which is not parted.
        tools, depth = [""], 0
        for one in value:
            depth += (one == "(") - (one == ")")
            if one in ", " and depth <= 0:
                tools.append("")
            else:
                tools[-1] += one
        return tuple(filter(None, tools))
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


class Places(NamedTuple):
    """What a text asks for."""

    names: tuple[str, ...]
    """The argument of each position, or the one argument."""
    first: int
    """The number of the first position."""
    appended: bool
    """Whether the text has no place for the one argument, which then comes after it."""


def find_places(body: str, hint: str) -> Places:
    """The arguments that a text and its argument-hint ask for."""
    found = list(PLACEHOLDER.finditer(body))
    numbers = [int(one[1] or one[2]) for one in found if one[1] or one[2]]
    if not numbers:
        return Places((_ALL,) if found or hint else (), 0, not found)
    first = 0 if 0 in numbers or any(one[1] for one in found) else 1
    count = max(numbers) - first + 1
    hinted = [re.sub(r"[^A-Za-z0-9_]+", "_", one.strip("<>[].… ")).strip("_")[:64] for one in _split_hint(hint)]
    fits = len(hinted) == count == len(set(hinted)) and all(hinted)
    return Places(tuple(hinted) if fits else tuple(f"arg{first + at}" for at in range(count)), first, False)


def find_arguments(body: str, hint: str) -> tuple[Argument, ...]:
    """These arguments. One is required where the hint has it between < and >."""
    names = find_places(body, hint).names
    if names == (_ALL,):
        required = hint.startswith("<") and "[" not in hint
        return (Argument(_ALL, description=hint or None, required=required),)
    written = _split_hint(hint)
    needed = [one.startswith("<") for one in written] if len(written) == len(names) else [False] * len(names)
    return order_arguments(Argument(name, required=one) for name, one in zip(names, needed, strict=True))


def _split_hint(hint: str) -> list[str]:
    return [one[0] for one in _HINT.finditer(hint)]

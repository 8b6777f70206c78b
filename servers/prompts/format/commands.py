"""Commands of Claude Code: the files of `.claude/commands`."""

from typing import Any

from servers.prompts.errors import PromptError
from servers.prompts.format.definitions import Message, Prompt
from servers.prompts.format.documents import Document
from servers.prompts.format.dollars import arguments
from shared.kit.yaml import YamlMapping

__all__ = ["command", "text_of", "tools_of"]

_MOST_DESCRIPTION = 2_000


def command(document: Document, name: str) -> Prompt:
    """The prompt of a command, whose name is that of its file. Keys for other hosts mean nothing. Raises PromptError.

    Without a description it is described by the first line of its text.
    """
    if not document.body:
        raise PromptError("bad_prompt", "it has no text", line=document.line)
    front = document.front if document.front is not None else YamlMapping(1)
    hint = text_of(front, "argument-hint")
    first_line = document.body.splitlines()[0].lstrip("# ")
    description = text_of(front, "description") or first_line or name
    return Prompt(
        name=name,
        description=description[:_MOST_DESCRIPTION],
        arguments=arguments(document.body, hint),
        messages=(Message("user", "text", document.body, document.line),),
        syntax="dollar",
        hint=hint,
        allowed_tools=tools_of(front),
    )


def text_of(front: YamlMapping, key: str) -> str:
    """A text of the front matter, "" where there is none. Raises PromptError."""
    value = front.get(key, "")
    if isinstance(value, dict | list):
        raise PromptError("bad_prompt", f"{key} is no text", line=front.lines[key])
    return "" if value is None else str(value).strip()


def tools_of(front: YamlMapping) -> tuple[str, ...]:
    """The `allowed-tools`, a list or a text with commas, or with spaces, between them."""
    value: Any = front.get("allowed-tools", ())
    if isinstance(value, str):
        return _split(value)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _split(text: str) -> tuple[str, ...]:
    tools, depth = [""], 0
    for one in text:
        depth += (one == "(") - (one == ")")
        if one in ", " and depth <= 0:
            tools.append("")
        else:
            tools[-1] += one
    return tuple(filter(None, tools))

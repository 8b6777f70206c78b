"""Agent Skills: a directory with a SKILL.md, read and written.

The format (agentskills.io) has no arguments. What a prompt has besides name, description and body is written as YAML
into one text of the `metadata`, which is the place for what a client may not know. A skill without that text is a
prompt too: one whose body is given as it is, or with the placeholders of Claude Code where it takes arguments.
"""

import re
from collections.abc import Iterable
from typing import Any

from servers.prompts.errors import PromptError
from servers.prompts.format.commands import text_of, tools_of
from servers.prompts.format.definitions import Argument, Message, Prompt
from servers.prompts.format.documents import Document
from servers.prompts.format.dollars import arguments
from servers.prompts.format.mappings import Mapped, dumped, mapped
from servers.prompts.format.prompts import described

__all__ = ["MOST_BYTES", "MOST_DESCRIPTION", "NAME", "require_named", "require_size", "skill", "written"]

NAME = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
"""What can be the name of a skill."""
_KEY = "prompt"
MOST_DESCRIPTION = 1_024
_MOST_FILES, MOST_BYTES = 512, 16 * 1024 * 1024
"""What every host can load of one skill."""


def skill(document: Document, name: str, base: str) -> Prompt:
    """The prompt of a SKILL.md in the directory `base`, which is called `name`. Raises PromptError."""
    front = document.front
    if front is None:
        raise PromptError("bad_prompt", "it does not begin with front matter between two lines of ---", line=1)
    name, description = text_of(front, "name") or name, text_of(front, "description")
    if not description:
        raise PromptError("bad_prompt", "the front matter has no description", line=front.line)
    metadata = front.get("metadata")
    ours = metadata.get(_KEY) if isinstance(metadata, Mapped) else None
    if isinstance(metadata, Mapped) and isinstance(ours, str):
        inner = mapped(ours, metadata.lines[_KEY] + 1)
        inner.setdefault("description", description)
        return described(inner, document, name)._replace(base=base, allowed_tools=tools_of(front))
    hint = text_of(front, "argument-hint")
    takes = bool(hint) or "$ARGUMENTS" in document.body
    if not document.body:
        raise PromptError("bad_prompt", "it has no text", line=document.line)
    return Prompt(
        name=name,
        description=description,
        arguments=arguments(document.body, hint) if takes else (),
        messages=(Message("user", "text", document.body, document.line),),
        syntax="dollar" if takes else "plain",
        base=base,
        hint=hint,
        allowed_tools=tools_of(front),
    )


def written(prompt: Prompt) -> str:
    """The SKILL.md of a prompt. The files that its templates and messages name stand beside it, at the same paths.

    Raises PromptError where a skill can't have its name or description.
    """
    _possible(prompt)
    front: dict[str, Any] = {"name": prompt.name, "description": prompt.description}
    if prompt.syntax == "dollar" and prompt.hint:
        front["argument-hint"] = prompt.hint
    elif prompt.syntax == "dollar" and "$ARGUMENTS" not in prompt.messages[0].content:
        front["argument-hint"] = " ".join(f"[{one.name}]" for one in prompt.arguments)
    if prompt.allowed_tools:
        front["allowed-tools"] = " ".join(prompt.allowed_tools)
    *before, last = prompt.messages
    body = last.content if last[:2] == ("user", "text") else ""
    if prompt.syntax == "jinja":
        inner = _inner(prompt, tuple(before) if body else prompt.messages)
        front["metadata"] = {_KEY: dumped(inner)}
    return f"---\n{dumped(front)}---\n" + (f"\n{body}\n" if body else "")


def require_named(prompt: Prompt, document: Document) -> None:
    """Raises PromptError where a SKILL.md, which is that of the prompt, is read by this library and not by others."""
    _possible(prompt)
    if not text_of(document.front or Mapped(1), "name"):
        suggestion = f"Write name: {prompt.name}"
        raise PromptError("bad_prompt", "the front matter has no name, which a skill needs", suggestion, line=1)


def require_size(others: Iterable[int]) -> None:
    """Raises PromptError where files of these sizes, beside a SKILL.md, are more than every host can load."""
    sizes = list(others)
    if len(sizes) >= _MOST_FILES or sum(sizes) > MOST_BYTES:
        raise PromptError("too_large", f"a skill has at most {_MOST_FILES} files and {MOST_BYTES:,} bytes")


def _possible(prompt: Prompt) -> None:
    if NAME.fullmatch(prompt.name) is None:
        suggestion = "Its name has 1 to 64 of the characters a-z 0-9, with single - between them."
        raise PromptError("bad_prompt", f"a skill can't be called {prompt.name!r}", suggestion)
    if len(prompt.description) > MOST_DESCRIPTION:
        raise PromptError("bad_prompt", f"the description of a skill has at most {MOST_DESCRIPTION:,} characters")


def _inner(prompt: Prompt, messages: tuple[Message, ...]) -> dict[str, Any]:
    found = {
        "title": prompt.title,
        "tags": list(prompt.tags),
        "arguments": [_argument(one) for one in prompt.arguments],
        "messages": [{"role": one.role, one.kind: one.content} for one in messages],
    }
    return {key: value for key, value in found.items() if value}


def _argument(argument: Argument) -> dict[str, Any]:
    found = argument._asdict() | {"enum": list(argument.enum), "examples": list(argument.examples)}
    default = found.pop("default")
    if argument.type == ("enum" if argument.enum else "string"):
        del found["type"]
    rest = {key: value for key, value in found.items() if value}
    # 0, false and an empty text are values of an argument.
    return rest if default is None else {**rest, "default": default}

"""Parses commands of hosts such as Claude Code: Markdown or TOML files whose text is sent as it is, except that
placeholders are replaced (see `placeholders`).

Any front matter is accepted: an unknown key or an invalid value never makes a command unusable.
"""

from typing import Any

from shared.yaml import YamlMapping

from ..errors import PromptError
from .definitions import Message, Prompt, Syntax, order_arguments
from .front_matter import NAME, Document
from .placeholders import find_arguments

_MAX_DESCRIPTION = 2_000
_MAX_TITLE = 200
_MAX_LISTED = 20
"""Maximum number of names of arguments, and of tags, that are read."""


def parse_command(document: Document, name: str, syntax: Syntax, base: str = "") -> Prompt:
    """Return the command in a Markdown file as a prompt called `name`. Raises PromptError if the file has no text.

    The default description is the first line of the text. `base` becomes `Prompt.base`.
    """
    front = document.front if document.front is not None else YamlMapping(1)
    if not document.body:
        raise PromptError("bad_prompt", "it has no text", line=document.line)
    hint = get_text(front, "argument-hint") or get_text(front, "argument_hint")
    names: tuple[str, ...] = ()
    if syntax == "claude":
        value = front.get("arguments")
        words = value.split() if isinstance(value, str) else _get_texts(front, "arguments")
        valid = (word for word in words if word.isidentifier() and len(word) <= 64)
        names = tuple(dict.fromkeys(valid))[:_MAX_LISTED]
    text_arguments = find_arguments(document.body, syntax, hint, names)
    first_line = document.body.splitlines()[0].lstrip("# ")
    return Prompt(
        name=name,
        title=get_text(front, "title")[:_MAX_TITLE] or None,
        description=(get_text(front, "description") or first_line or name)[:_MAX_DESCRIPTION],
        arguments=order_arguments(text_arguments.arguments),
        tags=_get_texts(front, "tags"),
        messages=(Message("user", "text", document.body, document.line),),
        syntax=syntax,
        words=text_arguments.words,
        declared=bool(names),
        base=base,
        hint=hint,
        allowed_tools=get_tools(front),
        notice=document.notice,
    )


def parse_toml_command(data: bytes, name: str) -> Prompt:
    """Return a Gemini CLI command as a prompt called `name`. Raises PromptError if the file is not TOML or has no
    `prompt`."""
    import tomllib

    try:
        content = tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise PromptError("bad_prompt", f"it is not TOML: {str(error)[:200]}") from None
    text, description = content.get("prompt"), content.get("description")
    if not isinstance(text, str) or not text.strip():
        raise PromptError("bad_prompt", "it has no text in `prompt`, which a Gemini CLI command needs")
    summary = description.strip() if isinstance(description, str) else ""
    return Prompt(
        name=name,
        description=(summary or text.strip().splitlines()[0].lstrip("# ") or name)[:_MAX_DESCRIPTION],
        arguments=find_arguments(text, "gemini").arguments,
        messages=(Message("user", "text", text.strip(), 1),),
        syntax="gemini",
    )


def get_name(front: YamlMapping | None, default: str) -> str:
    """Return the `name` in the front matter if it is valid for a prompt, or else `default`."""
    name = "" if front is None else get_text(front, "name")
    return name if NAME.fullmatch(name) else default


def get_text(front: YamlMapping, key: str) -> str:
    """Return the value of a key in the front matter as a string; "" if the key is missing. The items of a list are
    joined with commas."""
    value = front.get(key)
    if isinstance(value, list):
        return ", ".join(str(item) for item in value if isinstance(item, str | int | float))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None or isinstance(value, dict) else str(value).strip()


def get_tools(front: YamlMapping) -> tuple[str, ...]:
    """Return the `allowed-tools` in the front matter. They may be a list, or a string of names separated by commas or
    spaces."""
    value: Any = front.get("allowed-tools", ())
    if isinstance(value, str):
        # A name may have a pattern in parentheses after it, as in Bash(git add:*). Don't split the pattern.
        tools, depth = [""], 0
        for character in value:
            depth += (character == "(") - (character == ")")
            if character in ", " and depth <= 0:
                tools.append("")
            else:
                tools[-1] += character
        return tuple(filter(None, tools))
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _get_texts(front: YamlMapping, key: str) -> tuple[str, ...]:
    value = front.get(key)
    return tuple(item for item in value if isinstance(item, str))[:_MAX_LISTED] if isinstance(value, list) else ()

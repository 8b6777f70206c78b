"""Commands of hosts: Markdown files with a text that is sent as it is, but for placeholders (see `placeholders`).

Front matter of any form is taken: a key that says nothing here, or is not what it should be, never costs a command.
"""

from typing import Any

from servers.prompts.errors import PromptError
from servers.prompts.format.definitions import Message, Prompt, Syntax, order_arguments
from servers.prompts.format.front_matter import NAME, Document
from servers.prompts.format.placeholders import find_arguments
from shared.yaml import YamlMapping

_MOST_DESCRIPTION = 2_000
_MOST_TITLE = 200
_MOST_LISTED = 20
"""Names of arguments, and tags."""


def parse_command(document: Document, name: str, syntax: Syntax, base: str = "") -> Prompt:
    """The prompt of a Markdown file that is called `name`. Raises PromptError where it has no text.

    Without a description it is described by the first line of its text.
    """
    front = document.front if document.front is not None else YamlMapping(1)
    if not document.body:
        raise PromptError("bad_prompt", "it has no text", line=document.line)
    hint = get_text(front, "argument-hint") or get_text(front, "argument_hint")
    names = _get_names(front) if syntax == "claude" else ()
    asked = find_arguments(document.body, syntax, hint, names)
    first_line = document.body.splitlines()[0].lstrip("# ")
    return Prompt(
        name=name,
        title=get_text(front, "title")[:_MOST_TITLE] or None,
        description=(get_text(front, "description") or first_line or name)[:_MOST_DESCRIPTION],
        arguments=order_arguments(asked.arguments),
        tags=_get_texts(front, "tags"),
        messages=(Message("user", "text", document.body, document.line),),
        syntax=syntax,
        words=asked.words,
        declared=bool(names),
        base=base,
        hint=hint,
        allowed_tools=get_tools(front),
        notice=document.notice,
    )


def parse_toml_command(data: bytes, name: str) -> Prompt:
    """The prompt of a command of Gemini CLI. Raises PromptError where it has no `prompt`, or is no TOML."""
    import tomllib

    try:
        found = tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise PromptError("bad_prompt", f"it is not TOML: {str(error)[:200]}") from None
    text, description = found.get("prompt"), found.get("description")
    if not isinstance(text, str) or not text.strip():
        raise PromptError("bad_prompt", "it has no text in `prompt`, as a command of Gemini CLI has")
    said = description.strip() if isinstance(description, str) else ""
    return Prompt(
        name=name,
        description=(said or text.strip().splitlines()[0].lstrip("# ") or name)[:_MOST_DESCRIPTION],
        arguments=find_arguments(text, "gemini").arguments,
        messages=(Message("user", "text", text.strip(), 1),),
        syntax="gemini",
    )


def get_name(front: YamlMapping | None, otherwise: str) -> str:
    """The `name` that front matter gives a prompt, where it can be that of one."""
    name = "" if front is None else get_text(front, "name")
    return name if NAME.fullmatch(name) else otherwise


def get_text(front: YamlMapping, key: str) -> str:
    """A text of the front matter, "" where there is none; a list as people mean it, with commas between its items."""
    value = front.get(key)
    if isinstance(value, list):
        return ", ".join(str(one) for one in value if isinstance(one, str | int | float))
    return "" if value is None or isinstance(value, dict) else str(value).strip()


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


def _get_names(front: YamlMapping) -> tuple[str, ...]:
    """The names in `arguments`: a list, or words of a text."""
    value = front.get("arguments")
    names = value.split() if isinstance(value, str) else _get_texts(front, "arguments")
    return tuple(dict.fromkeys(one for one in names if one.isidentifier() and len(one) <= 64))[:_MOST_LISTED]


def _get_texts(front: YamlMapping, key: str) -> tuple[str, ...]:
    value = front.get(key)
    return tuple(one for one in value if isinstance(one, str))[:_MOST_LISTED] if isinstance(value, list) else ()

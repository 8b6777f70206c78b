"""The keys of front matter: one table that readers check files by and that the JSON Schema is made from."""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from servers.prompts.errors import PromptError
from shared.kit.yaml import YamlMapping

__all__ = ["ARGUMENT", "MESSAGE", "NAME", "PROMPT", "TYPES", "Key", "checked", "refuse"]

_CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
NAME = re.compile(rf"[^\s{_CONTROLS}](?:[^{_CONTROLS}]{{0,126}}[^\s{_CONTROLS}])?")
"""What can be the name of a prompt. Which of these reach a client unchanged is another question."""
_ARGUMENT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
TYPES = ("string", "number", "boolean", "enum", "file", "url", "list")
_SPECIAL = frozenset(["and", "else", "false", "if", "in", "is", "loop", "none", "not", "or", "range", "self", "true"])
"""Words that mean something in a template."""
_ROLES = ("user", "assistant")


class Key(NamedTuple):
    """What a key may hold."""

    kind: str
    """text, texts, boolean, value, items, or a name for one of the checks below."""
    description: str
    most: int = 2_000
    """Characters, or items of a list."""
    required: bool = False


ARGUMENT = {
    "name": Key("argument", "How the template names it: letters, digits and _.", 64, required=True),
    "type": Key("type", "What it holds. Without: string, or enum where there is an enum."),
    "title": Key("text", "Its name for people.", 200),
    "description": Key("text", "What to put there."),
    "required": Key("boolean", "Whether the prompt can't do without. Without: false."),
    "default": Key("value", "What it is where nothing is given."),
    "enum": Key("texts", "The values that it can have.", 100),
    "examples": Key("texts", "Values that a client suggests.", 100),
}
MESSAGE = {
    "role": Key("role", "Who says it. Without: user."),
    "text": Key("text", "What is said, as a template.", 60_000),
    "image": Key("text", "A path: the picture in that file of the library.", 500),
    "audio": Key("text", "A path: the sound in that file of the library.", 500),
    "resource": Key("text", "A path: that file of the library, embedded.", 500),
}
PROMPT = {
    "name": Key("name", "What clients ask for it by. Without: the file's path, with - between names.", 128),
    "title": Key("text", "Its name for people.", 200),
    "description": Key("text", "What it is for: people choose by it.", required=True),
    "tags": Key("texts", "Words to find it by.", 20),
    "arguments": Key("items", "What it is asked with.", 50),
    "messages": Key("items", "Messages before the body, which is the last one, from the user.", 50),
}


def checked(found: YamlMapping, keys: Mapping[str, Key], where: str) -> None:
    """Raises PromptError unless the mapping has what `keys` allow and require."""
    for name, value in found.items():
        key = keys.get(name)
        if key is None:
            refuse(found, name, f"{where} has {name[:80]!r}, which means nothing (there are: {', '.join(keys)})")
        reason = _objection(key, value)
        if reason is not None:
            refuse(found, name, f"{where}: {name} {reason}")
    for name, key in keys.items():
        if key.required and not found.get(name):
            refuse(found, "", f"{where} has no {name}")


def refuse(found: YamlMapping, key: str, reason: str) -> NoReturn:
    """Says what is wrong, at the line of the key."""
    raise PromptError("bad_prompt", reason, line=found.lines.get(key, found.line))


def _objection(key: Key, value: Any) -> str | None:
    match key.kind:
        case "text" | "name" | "argument":
            return _no_text(key, value)
        case "boolean":
            return None if isinstance(value, bool) else "is neither true nor false"
        case "value":
            return _no_value(value)
        case "texts":
            return _no_texts(key, value)
        case "items":
            whole = isinstance(value, list) and all(isinstance(one, YamlMapping) for one in value)
            return None if whole and len(value) <= key.most else f"is no list of at most {key.most} mappings"
    choices = TYPES if key.kind == "type" else _ROLES
    return None if value in choices else f"is none of: {', '.join(choices)}"


def _no_text(key: Key, value: Any) -> str | None:
    if not isinstance(value, str):
        return "is no text; put it in quotes" if isinstance(value, int | float) else "is no text"
    if len(value) > key.most:
        return f"has more than {key.most:,} characters"
    if key.kind == "name" and NAME.fullmatch(value) is None:
        return "is no name: it has 1 to 128 characters, no control characters, and no space at its ends"
    if key.kind == "argument" and _ARGUMENT_NAME.fullmatch(value) is None:
        return "is no name of letters, digits and _ that begins with a letter"
    if key.kind == "argument" and value.lower() in _SPECIAL:
        return f"is {value!r}, which means something else in a template"
    return None


def _no_texts(key: Key, value: Any) -> str | None:
    if not isinstance(value, list) or not value or len(value) > key.most:
        return f"is no list of 1 to {key.most} texts"
    line = Key("text", "", 500)
    return next((f"has an item that {one}" for one in (_no_text(line, item) for item in value) if one), None)


def _no_value(value: Any) -> str | None:
    if isinstance(value, list):
        return None if all(isinstance(one, str) for one in value) else "is a list of something else than texts"
    if isinstance(value, float) and not math.isfinite(value):
        return "is no finite number"
    return None if isinstance(value, str | int | float) else "is no value of an argument"

"""Splits a file into front matter and body, and checks the keys and values of front matter by the tables `PROMPT`,
`ARGUMENT` and `MESSAGE`.

`front-matter.schema.json` next to this file has the same rules as a JSON Schema, for editors. The test
`tests/servers/prompts/format/test_front_matter.py` generates it from the tables, and checks that they agree.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from shared.yaml import YamlError, YamlLimits, YamlMapping, read_yaml

from ..errors import PromptError

MAX_FILE_BYTES = 256_000
"""Maximum size of a file, in bytes."""
FRONT_MATTER = YamlLimits(characters=64_000, values=10_000, depth=12)

_BLOCK = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# Claude Code reads `argument-hint: [a] [b]` as a string. In YAML, [a] is a list, and a second [ is an error.
_HINT = re.compile(r"^(argument-hint:[ \t]+)(\[[^\n]*)$", re.MULTILINE)

_UNCLOSED_BLOCK = re.compile(r"---[ \t]*\n[A-Za-z][\w-]*:")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
STRUCTURED = ("arguments", "messages")
"""Keys whose values are lists of mappings in this server's own format. Other formats have no such values."""
# A key does not begin with a capital: lines such as `Context: ...` are examples that belong to a description.
_KEY_LINE = re.compile(r"([a-z][\w-]{0,63}):(?:[ \t]+(.*)|())")
_BLOCK_MARK = re.compile(r"[|>][-+0-9]*")
"""The mark before a text on several lines (YAML 1.2.2, section 8.1)."""
_ITEM_LINE = re.compile(r"[ \t]*-[ \t]+(.+)")

_CONTROL_CHARACTERS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
NAME = re.compile(rf"(?!\s)[^{_CONTROL_CHARACTERS}]{{1,128}}(?<!\s)")
"""The valid names of prompts."""
_ARGUMENT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
TYPES = ("string", "number", "boolean", "enum", "file", "url", "list")
_RESERVED_WORDS = frozenset(
    ["and", "else", "false", "if", "in", "is", "loop", "none", "not", "or", "range", "self", "true"]
)
"""Words that have a meaning in templates, so that they can't be names of arguments."""
_ROLES = ("user", "assistant")


class Document(NamedTuple):
    """The parts of a file."""

    front: YamlMapping | None
    """The front matter; None if the file has none."""
    body: str
    """The text after the front matter, without white space around it, and with \\n as the only line ending."""
    line: int
    """The line where the body begins."""
    notice: tuple[int, str] | None = None
    """The line and the description of an error in the front matter; None if it is valid YAML."""


def parse_document(data: bytes) -> Document:
    """Split a file into its parts. Raises PromptError."""
    if len(data) > MAX_FILE_BYTES:
        raise PromptError("bad_prompt", f"it has more than {MAX_FILE_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PromptError("bad_prompt", "it is not UTF-8", line=line) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    match = _BLOCK.match(text)
    if match is None:
        # A file without front matter may begin with a horizontal rule, which is also written as ---.
        if _UNCLOSED_BLOCK.match(text):
            raise PromptError("bad_prompt", "its front matter has no closing --- line", line=1)
        return Document(None, text.strip(), _find_line(text, 0))
    yaml_text = _HINT.sub(lambda hint: hint[1] + json.dumps(hint[2].rstrip(), ensure_ascii=False), match[1])
    body, line = text[match.end() :].strip(), _find_line(text, match.end())
    try:
        return Document(parse_mapping(yaml_text, 2), body, line)
    except PromptError as error:
        front = _read_lines(match[1])
        if front is None:
            raise
        how = "it is read line by line" if front else "it is left out"
        notice = f"{error.reason}; {how}, as hosts do"
        return Document(front, body, line, (error.line or 1, notice))


def _read_lines(text: str) -> YamlMapping | None:
    """Return the keys of front matter that is not valid YAML, each with its text or its list of texts. Return no keys
    for text between two horizontal rules. Return None if the text can't be read line by line, since `arguments` or
    `messages` has mappings, or if it is too long or has control characters."""
    if len(text) > FRONT_MATTER.characters or _UNPRINTABLE.search(text):
        return None
    # The first line of the file is ---.
    front = YamlMapping(2)
    key = ""
    for number, text_line in enumerate(text.split("\n"), 2):
        match = _KEY_LINE.fullmatch(text_line)
        # Items below a text continue it, as in `description: Use it for:`.
        item = None if isinstance(front.get(key), str) and front[key] else _ITEM_LINE.fullmatch(text_line)
        if match is not None:
            key = match[1]
            if key in STRUCTURED and (match[2] or "").startswith(("[{", "{")):
                return None
            front[key] = _unquote(match[2] or "")
            front.lines[key] = number
        elif key and item is not None:
            if _KEY_LINE.fullmatch(item[1]) is not None and key in STRUCTURED:
                return None
            front[key] = [*(front[key] if isinstance(front[key], list) else ()), _unquote(item[1])]
        elif key and text_line.strip() and isinstance(front[key], str):
            before = "" if _BLOCK_MARK.fullmatch(front[key]) else front[key]
            front[key] = f"{before} {text_line.strip()}".strip()
    return front


def _unquote(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] in "\"'" else text


def parse_mapping(text: str, line: int = 1) -> YamlMapping:
    """Parse the YAML mapping in `text`. `line` is the number of its first line in the file. Raises PromptError."""
    try:
        value = read_yaml(text, what="the front matter", line=line, limits=FRONT_MATTER)
    except YamlError as error:
        raise PromptError("bad_prompt", error.reason, line=error.line) from None
    if not isinstance(value, YamlMapping | None):
        raise PromptError("bad_prompt", "the front matter is not a mapping of keys to values", line=line)
    return YamlMapping(line) if value is None else value


def _find_line(text: str, start: int) -> int:
    """Return the number of the first line that is not blank, from the index `start` of `text` on."""
    rest = text[start:]
    blank = len(rest) - len(rest.lstrip())
    return text.count("\n", 0, start + blank) + 1


class Key(NamedTuple):
    """The rule for the value of a key."""

    kind: str
    """text, texts, boolean, value (of an argument), items (mappings), name (of a prompt), argument (the name of an
    argument), type (of an argument) or role (of a message)."""
    description: str
    limit: int = 2_000
    """Maximum number of characters, or of items in a list."""
    required: bool = False


ARGUMENT = {
    "name": Key("argument", "The name in the template: letters, digits and _.", 64, required=True),
    "type": Key("type", "The type of its value. Default: string, or enum if there is an enum."),
    "title": Key("text", "The name that people see.", 200),
    "description": Key("text", "The meaning of the value, for people."),
    "required": Key("boolean", "Whether the argument is required. Default: false."),
    "default": Key("value", "The value of an omitted argument."),
    "enum": Key("texts", "The possible values.", 100),
    "examples": Key("texts", "Values for clients to suggest.", 100),
}
MESSAGE = {
    "role": Key("role", "The sender. Default: user."),
    "text": Key("text", "The text, as a template.", 60_000),
    "image": Key("text", "The path of an image file in the library.", 500),
    "audio": Key("text", "The path of an audio file in the library.", 500),
    "resource": Key("text", "The path of the file to embed, in the library.", 500),
}
PROMPT = {
    "name": Key("name", "The name in clients. Default: the path of the file, with - between names.", 128),
    "title": Key("text", "The name that people see.", 200),
    "description": Key("text", "The purpose, which helps people choose it.", required=True),
    "tags": Key("texts", "Search words.", 20),
    "arguments": Key("items", "Its arguments.", 50),
    "messages": Key("items", "Messages before the body. The body is the last message, from the user.", 50),
}


def require_keys(mapping: YamlMapping, keys: Mapping[str, Key], where: str) -> None:
    """Raise PromptError unless the mapping has only the keys in `keys`, with valid values, and all required ones.
    `where` says in the error which mapping it is."""
    for name, value in mapping.items():
        key = keys.get(name)
        if key is None:
            refuse(mapping, name, f"{where} has {name[:80]!r}, which is not a known key (known: {', '.join(keys)})")
        reason = _check_value(key, value)
        if reason is not None:
            refuse(mapping, name, f"{where}: {name} {reason}")
    for name, key in keys.items():
        if key.required and not mapping.get(name):
            refuse(mapping, "", f"{where} has no {name}")


def refuse(mapping: YamlMapping, key: str, reason: str) -> NoReturn:
    """Raise PromptError with the line of the key, or of the mapping if it does not have the key."""
    raise PromptError("bad_prompt", reason, line=mapping.lines.get(key, mapping.line))


def _check_value(key: Key, value: Any) -> str | None:
    """Return what is wrong with a value, as the end of a sentence; None if it is valid."""
    match key.kind:
        case "text" | "name" | "argument":
            return _check_text(key, value)
        case "boolean":
            return None if isinstance(value, bool) else "is neither true nor false"
        case "value":
            if isinstance(value, list):
                are_strings = all(isinstance(element, str) for element in value)
                return None if are_strings else "is a list with items that are not strings"
            if isinstance(value, float) and not math.isfinite(value):
                return "is not a finite number"
            return None if isinstance(value, str | int | float) else "can't be the value of an argument"
        case "texts":
            if not isinstance(value, list) or not value or len(value) > key.limit:
                return f"is not a list of 1 to {key.limit} strings"
            line = Key("text", "", 500)
            wrong = next(filter(None, (_check_text(line, item) for item in value)), None)
            return None if wrong is None else f"has an item that {wrong}"
        case "items":
            are_mappings = isinstance(value, list) and all(isinstance(element, YamlMapping) for element in value)
            return (
                None if are_mappings and len(value) <= key.limit else f"is not a list of at most {key.limit} mappings"
            )
    choices = TYPES if key.kind == "type" else _ROLES
    return None if value in choices else f"is not one of: {', '.join(choices)}"


def _check_text(key: Key, value: Any) -> str | None:
    if not isinstance(value, str):
        return "is not a string; put it in quotes" if isinstance(value, int | float) else "is not a text"
    if len(value) > key.limit:
        return f"has more than {key.limit:,} characters"
    if key.kind == "name" and NAME.fullmatch(value) is None:
        return (
            "is not a valid name: it must have 1 to 128 characters, no control characters, and no space at its ends"
        )
    if key.kind == "argument" and _ARGUMENT_NAME.fullmatch(value) is None:
        return "is not a name of letters, digits and _ that begins with a letter"
    if key.kind == "argument" and value.lower() in _RESERVED_WORDS:
        return f"is {value!r}, which has another meaning in a template"
    return None

"""A file of a prompt as front matter and body."""

import json
import re
from typing import NamedTuple

from servers.prompts.errors import PromptError
from shared.kit.yaml import YamlError, YamlLimits, YamlMapping, read_yaml

__all__ = ["FRONT_MATTER", "MOST_BYTES", "Document", "document", "mapped"]

MOST_BYTES = 256_000
"""Of a file."""
FRONT_MATTER = YamlLimits(characters=64_000, values=10_000, depth=12)

_FORM = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# Claude Code has it written so, and means a text; in YAML it is a list, or an error where another [ follows.
_HINT = re.compile(r"^(argument-hint:[ \t]+)(\[[^\n]*)$", re.MULTILINE)


class Document(NamedTuple):
    """What is in a file."""

    front: YamlMapping | None
    """None where it does not begin with front matter."""
    body: str
    """Without white space around it, and with \\n alone at the ends of lines."""
    line: int
    """Where the body begins."""


def document(data: bytes) -> Document:
    """The parts of a file. Raises PromptError."""
    if len(data) > MOST_BYTES:
        raise PromptError("bad_prompt", f"it has more than {MOST_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PromptError("bad_prompt", "it is not UTF-8", line=line) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    found = _FORM.match(text)
    if found is None:
        if re.match(r"---[ \t]*\n", text):
            raise PromptError("bad_prompt", "its front matter has no end, which is a line of ---", line=1)
        return Document(None, text.strip(), _begins(text, 0))
    return Document(mapped(_HINT.sub(_quoted, found[1]), 2), text[found.end() :].strip(), _begins(text, found.end()))


def mapped(text: str, line: int = 1) -> YamlMapping:
    """The mapping that is written in `text`, whose first line is `line` of its file. Raises PromptError."""
    try:
        value = read_yaml(text, what="the front matter", line=line, limits=FRONT_MATTER)
    except YamlError as error:
        raise PromptError("bad_prompt", error.reason, line=error.line) from None
    if not isinstance(value, YamlMapping | None):
        raise PromptError("bad_prompt", "the front matter is no mapping of keys to values", line=line)
    return YamlMapping(line) if value is None else value


def _quoted(hint: re.Match[str]) -> str:
    return hint[1] + json.dumps(hint[2].rstrip(), ensure_ascii=False)


def _begins(text: str, start: int) -> int:
    rest = text[start:]
    blank = len(rest) - len(rest.lstrip())
    return text.count("\n", 0, start + blank) + 1

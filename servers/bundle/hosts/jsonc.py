"""Parses JSON, and JSON with comments, into a tree of elements with their positions.

Edits are made at these positions, so that the rest of a file stays unchanged, byte for byte. JSON with comments, as
editors read it, may also have trailing commas. Python's own parser decides what is valid, and what the value is,
after comments and trailing commas have been replaced by spaces. The positions come from a parser of JavaScript, since
parsers of JSON do not support trailing commas.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

BOM = b"\xef\xbb\xbf"
MAX_BYTES = 64_000_000
"""Maximum size of a file, in bytes. The file of a client that stores the history of its sessions there may have
several megabytes."""

_JAVASCRIPT = Language(tree_sitter_javascript.language())
# In JavaScript, braces are an object only inside parentheses. The newline ends a comment on the last line.
_BEFORE, _AFTER = b"(", b"\n)"
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"?'
# What the group matches stays: strings, and errors that the parser has to reject, such as an unclosed comment or a
# comma without a value.
_COMMENT = re.compile(rf"//[^\r\n\u2028\u2029]*|/\*.*?\*/|({_STRING}|/\*.*)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING}|[\[{{,]\s*,)|,(?=\s*[\]}}])", re.DOTALL)


class Element:
    """One element of the tree. `start` and `end` are offsets in the bytes of the file."""

    def __init__(self, node: Node, shift: int) -> None:
        self._node = node
        self._shift = shift
        self.start = node.start_byte + shift
        self.end = node.end_byte + shift
        self.is_object = node.type == "object"

    def members(self) -> list["Member"]:
        """Return the members of an object. Raises ValueError for a duplicate key."""
        by_name: dict[str, Member] = {}
        for pair in self._node.named_children:
            if pair.type == "pair":
                key, value = (Element(child, self._shift) for child in pair.named_children if child.type != "comment")
                member = Member(key.value(), Element(pair, self._shift), value)
                if member.name in by_name:
                    raise ValueError(f"the key {member.name!r} occurs twice")
                by_name[member.name] = member
        return list(by_name.values())

    def member(self, name: str) -> "Member | None":
        """Return the member called `name`; None if it does not exist. Raises ValueError like `members`."""
        return next((member for member in self.members() if member.name == name), None)

    def parts(self) -> Iterator["Element"]:
        """Return the children, in order: brackets, commas, members, values, comments."""
        return (Element(child, self._shift) for child in self._node.children)

    @property
    def kind(self) -> str:
        """The kind of element: `object`, `array`, `pair`, `string`, `comment`, `,` and so on."""
        return self._node.type

    def value(self) -> Any:
        """Return the value of the element. Raises ValueError if it is nested too deeply."""
        try:
            return json.loads(_as_plain_json(self.text()))
        except RecursionError:
            raise ValueError("is nested too deeply") from None

    def text(self) -> str:
        """Return the source text of the element."""
        return (self._node.text or b"").decode()


class Member(NamedTuple):
    """A member of an object: its name, the element with name and value, and the element of the value."""

    name: str
    element: Element
    value: Element


@lru_cache(maxsize=2)
def parse(text: bytes, comments: bool) -> Element | None:
    """Return the element of the value in `text`; None if the text contains only white space and, if `comments` are
    allowed, comments.

    The last two texts are cached, since an edit parses each of them several times. Raises ValueError with line and
    column for invalid JSON, or for invalid JSON with comments if `comments` are allowed.
    """
    if len(text) > MAX_BYTES:
        raise ValueError(f"has more than {MAX_BYTES} bytes")
    body = text.removeprefix(BOM)
    try:
        bare = _as_plain_json(body.decode()) if comments else body.decode()
        if not bare.strip():
            return None
        json.loads(bare, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except json.JSONDecodeError as error:
        form = "JSON with comments" if comments else "JSON"
        # The likely cause is a Windows path.
        hint = "; write each backslash twice" if error.doc[error.pos : error.pos + 1] == "\\" else ""
        raise ValueError(f"is not {form}: line {error.lineno}, column {error.colno}: {error.msg}{hint}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    statement = Parser(_JAVASCRIPT).parse(_BEFORE + body + _AFTER).root_node.children[0]
    inside = statement.children[0].named_children
    node = next(child for child in inside if child.type != "comment")
    return Element(node, len(text) - len(body) - len(_BEFORE))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"is not JSON: there is no value {name}")


def _as_plain_json(text: str) -> str:
    """Return JSON with comments as plain JSON in which all positions are the same."""
    text = _COMMENT.sub(lambda match: match[1] or re.sub(r"[^\r\n]", " ", match[0]), text)
    return _TRAILING_COMMA.sub(lambda match: match[1] or " ", text)

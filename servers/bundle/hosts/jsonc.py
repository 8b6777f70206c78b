"""JSON and JSON with comments as a tree whose parts know where they stand.

Edits are made at these places, so that everything else of a file stays as it is, byte for byte. What the editors call
JSON with comments has trailing commas as well. Python's own parser says what is valid, and what it means, once blanks
stand in the place of both. For where it stands there is a parser of JavaScript: grammars of JSON do not know trailing
commas.
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
"""Bytes of a file that is read; the configuration of a client with the history of its sessions has some millions."""

_JAVASCRIPT = Language(tree_sitter_javascript.language())
# Within parentheses braces are an object, and the newline ends a comment on the last line.
_BEFORE, _AFTER = b"(", b"\n)"
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"?'
# What is in the group stays, to be refused where it is no JSON: a comment without an end, a comma without a value.
_COMMENT = re.compile(rf"//[^\r\n\u2028\u2029]*|/\*.*?\*/|({_STRING}|/\*.*)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING}|[\[{{,]\s*,)|,(?=\s*[\]}}])", re.DOTALL)


class Element:
    """One value; `start` and `end` are offsets in the bytes of the file."""

    def __init__(self, node: Node, shift: int) -> None:
        self._node = node
        self._shift = shift
        self.start = node.start_byte + shift
        self.end = node.end_byte + shift
        self.is_object = node.type == "object"

    def members(self) -> list["Member"]:
        """The members of an object. Raises ValueError for a key that is there twice."""
        found: dict[str, Member] = {}
        for pair in self._node.named_children:
            if pair.type == "pair":
                key, value = (Element(child, self._shift) for child in pair.named_children if child.type != "comment")
                member = Member(key.value(), Element(pair, self._shift), value)
                if member.name in found:
                    raise ValueError(f"the key {member.name!r} is there twice")
                found[member.name] = member
        return list(found.values())

    def member(self, name: str) -> "Member | None":
        """The member called `name`. Raises ValueError as `members` does."""
        return next((member for member in self.members() if member.name == name), None)

    def parts(self) -> Iterator["Element"]:
        """What it consists of, in order: brackets, commas, members, values, comments."""
        return (Element(child, self._shift) for child in self._node.children)

    @property
    def kind(self) -> str:
        """What it is: `object`, `array`, `pair`, `string`, `comment`, `,` and so on."""
        return self._node.type

    def value(self) -> Any:
        """The value itself. Raises ValueError where it is nested too deeply."""
        try:
            return json.loads(_bare(self.text()))
        except RecursionError:
            raise ValueError("is nested too deeply") from None

    def text(self) -> str:
        """It as it is written."""
        return (self._node.text or b"").decode()


class Member(NamedTuple):
    """A member of an object, and its value."""

    name: str
    whole: Element
    value: Element


@lru_cache(maxsize=2)
def parse(text: bytes, comments: bool) -> Element | None:
    """The value that stands in `text`; None where there is nothing but white space, and comments if there may be.

    The last two texts are kept, since an edit looks at each of them several times. Raises ValueError with line and
    column for what is no JSON, or no JSON with comments if there may be `comments`.
    """
    if len(text) > MAX_BYTES:
        raise ValueError(f"has more than {MAX_BYTES} bytes")
    body = text.removeprefix(BOM)
    try:
        bare = _bare(body.decode()) if comments else body.decode()
        if not bare.strip():
            return None
        json.loads(bare, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except json.JSONDecodeError as error:
        form = "JSON with comments" if comments else "JSON"
        raise ValueError(f"is not {form}: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    statement = Parser(_JAVASCRIPT).parse(_BEFORE + body + _AFTER).root_node.children[0]
    inside = statement.children[0].named_children
    node = next(child for child in inside if child.type != "comment")
    return Element(node, len(text) - len(body) - len(_BEFORE))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"is not JSON: there is no value {name}")


def _bare(text: str) -> str:
    """The JSON in JSON with comments, in which everything stands where it stood."""
    text = _COMMENT.sub(lambda found: found[1] or re.sub(r"[^\r\n]", " ", found[0]), text)
    return _TRAILING_COMMA.sub(lambda found: found[1] or " ", text)

"""JSON and JSON with comments as a tree whose parts know where they stand.

Edits are made at these places, so that everything else of a file stays as it is, byte for byte. What the editors call
JSON with comments has trailing commas as well, which grammars of JSON do not know, while a parser of JavaScript takes
comments and trailing commas as they are; what JavaScript has besides is refused here.
"""

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

BOM = b"\xef\xbb\xbf"
MAX_BYTES = 64_000_000
"""Bytes of a file that is read; the configuration of a client with the history of its sessions has some millions."""

_JAVASCRIPT = Language(tree_sitter_javascript.language())
_SCALARS = {"string", "number", "true", "false", "null", "unary_expression"}
# Within parentheses braces are an object, and the newline ends a comment on the last line.
_BEFORE, _AFTER = b"(", b"\n)"


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
                member = self._member(pair)
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
            return _value(self._node)
        except RecursionError:
            raise ValueError("is nested too deeply") from None

    def _member(self, pair: Node) -> "Member":
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        if key is None or value is None:
            raise ValueError("a member of an object has no value")
        return Member(_scalar(key), Element(pair, self._shift), Element(value, self._shift))


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
    try:
        decoded = text.removeprefix(BOM).decode()
        if not comments and decoded.strip():
            json.loads(decoded, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    body = text.removeprefix(BOM)
    root = Parser(_JAVASCRIPT).parse(_BEFORE + body + _AFTER).root_node
    shift = len(text) - len(body) - len(_BEFORE)
    node = _only_value(root, len(body))
    if node is None and _is_blank(body):
        return None
    wrong = root if node is None else _first_wrong(node) if comments or root.has_error else None
    if wrong is not None or node is None:
        raise ValueError(f"is not JSON with comments: {_place(body, _first_error(wrong or root))}")
    return Element(node, shift)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"is not JSON: there is no value {name}")


def _is_blank(body: bytes) -> bool:
    root = Parser(_JAVASCRIPT).parse(body).root_node
    return all(child.type == "comment" for child in root.children)


def _only_value(root: Node, length: int) -> Node | None:
    """The value between the parentheses, where there is one and all of the text belongs to it."""
    statements = [child for child in root.children if child.type != "comment"]
    if len(statements) != 1 or statements[0].type != "expression_statement" or root.has_error:
        return None
    whole = statements[0].children[0]
    if whole.type != "parenthesized_expression" or whole.end_byte != len(_BEFORE) + length + len(_AFTER):
        return None
    inside = [child for child in whole.named_children if child.type != "comment"]
    return inside[0] if len(inside) == 1 else None


def _first_wrong(top: Node) -> Node | None:
    """The first part that is JavaScript and no JSON."""
    rest = [top]
    while rest:
        node = rest.pop()
        wrong = _wrong_child(node) if node.type in ("object", "array") else _wrong_scalar(node)
        if wrong is not None:
            return wrong
        inner = [child for child in node.named_children if child.type != "comment"]
        if node.type == "object":
            inner = [value for pair in inner if (value := pair.child_by_field_name("value")) is not None]
        rest.extend(reversed(inner if node.type in ("object", "array") else []))
    return None


def _wrong_child(node: Node) -> Node | None:
    children = [child for child in node.children if child.type != "comment"]
    for before, child in pairwise(children):
        if child.type == "," and before.type in (",", "{", "["):
            return child
        if node.type == "object" and child.is_named:
            key = child.child_by_field_name("key")
            if child.type != "pair" or key is None or _wrong_scalar(key) is not None or key.type != "string":
                return child
    return None


def _wrong_scalar(node: Node) -> Node | None:
    if node.type not in _SCALARS:
        return node
    try:
        _scalar(node)
    except ValueError:
        return node
    return None


def _scalar(node: Node) -> Any:
    return json.loads((node.text or b"").decode())


def _value(node: Node) -> Any:
    inner = [child for child in node.named_children if child.type != "comment"]
    if node.type == "array":
        return [_value(child) for child in inner]
    if node.type == "object":
        pairs = [(pair.child_by_field_name("key"), pair.child_by_field_name("value")) for pair in inner]
        return {_scalar(key): _value(value) for key, value in pairs if key is not None and value is not None}
    return _scalar(node)


def _first_error(node: Node) -> int:
    """Where the first thing stands that the parser could not read; else the node itself."""
    while node.has_error:
        inner = next((child for child in node.children if child.has_error or child.is_missing), None)
        if inner is None:
            break
        node = inner
    return node.start_byte - len(_BEFORE)


def _place(body: bytes, offset: int) -> str:
    at = min(max(offset, 0), len(body))
    start = body.rfind(b"\n", 0, at) + 1
    column = len(body[start:at].decode(errors="replace")) + 1
    line = body.count(b"\n", 0, start) + 1
    return f"line {line}, column {column}"

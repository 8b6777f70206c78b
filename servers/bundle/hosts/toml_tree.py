"""Parses TOML into a tree of elements with their positions, like `jsonc` for JSON, and finds its tables.

`tomllib` decides what is valid, and what the value is. The tree is only used for positions.
"""

import tomllib
from collections.abc import Iterator
from typing import Any

import tree_sitter_toml
from tree_sitter import Language, Parser

from .jsonc import BOM, Element

_TOML = Language(tree_sitter_toml.language())


class TomlElement(Element):
    """A table, a pair, a value or a comment. `start` and `end` are offsets in the bytes of the file."""

    def parts(self) -> Iterator["TomlElement"]:
        """Return the children, in order: brackets, keys, pairs, values, comments."""
        return (TomlElement(child, self._shift) for child in self._node.children)

    def value(self) -> Any:
        """Return the value of the element."""
        return tomllib.loads(f"x = {self.text()}")["x"]

    def path(self) -> list[str]:
        """Return the names in a dotted key, such as `a` and `b c` in `a."b c"`."""
        value, names = tomllib.loads(f"{self.text()} = 0"), list[str]()
        while isinstance(value, dict):
            ((name, value),) = value.items()
            names.append(name)
        return names


def parse_toml(text: bytes) -> TomlElement:
    """Return the element of the document in `text`, whose parts are comments, pairs and tables. Raises ValueError
    like `toml_value`."""
    toml_value(text)
    return TomlElement(Parser(_TOML).parse(text).root_node, 0)


def toml_value(text: bytes) -> dict[str, Any]:
    """Return the value of the document in `text`. Raises ValueError, with line and column, for invalid TOML."""
    try:
        return tomllib.loads(text.removeprefix(BOM).decode())
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not TOML: {error}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


Span = tuple[int, int]


def table_spans(text: bytes, path: list[str]) -> list[Span]:
    """Return the positions of the tables whose keys begin with `path`, in order. Tables with only white space between
    them count as one. Raises ValueError if there is none.

    Comments after the last pair of a table do not belong to it, except one on the same line.
    """
    merged: list[Span] = []
    for table in parse_toml(text).parts():
        if table.kind not in ("table", "table_array_element"):
            continue
        parts = list(table.parts())
        if parts[1].path()[: len(path)] != path:
            continue
        end = next(part.end for part in reversed(parts) if part.kind != "comment")
        end = max(part.end for part in parts if part.end == end or b"\n" not in text[end : part.end])
        # In the parser's tree, a pair may include white space at the end of the line, and the first half of CRLF.
        end = len(text[:end].rstrip(b" \t\r"))
        if merged and not text[merged[-1][1] : table.start].strip():
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((table.start, end))
    if not merged:
        raise ValueError(f"{path[-1]!r} has no separate table [{'.'.join(path)}]: edit the file by hand")
    return merged


def separator(text: bytes, newline: bytes) -> bytes:
    """Return the line endings to insert before a new table at the end of `text`."""
    if not text.strip(b"\xef\xbb\xbf \t\r\n"):
        return b"" if text.endswith((b"\n", b"\xef\xbb\xbf")) or not text else newline
    if not text.endswith(b"\n"):
        return newline * 2
    return b"" if text.endswith((b"\n\n", b"\n\r\n")) else newline


def remove_spans(text: bytes, removed: list[Span]) -> bytes:
    """Return the text without the spans `removed`, each with one of the empty lines around it."""
    for start, end in reversed(removed):
        past = text.find(b"\n", end) + 1 or len(text)
        head, tail = text[:start], text[past:]
        if tail.startswith((b"\n", b"\r\n")):
            tail = tail[tail.index(b"\n") + 1 :]
        elif not tail and head.endswith((b"\n\n", b"\n\r\n")):
            head = head.removesuffix(b"\n").removesuffix(b"\r")
        text = head + tail
    return text

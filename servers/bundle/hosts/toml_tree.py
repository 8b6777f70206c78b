"""TOML as a tree whose parts know where they stand, as `jsonc` has JSON, and the tables in it.

What is valid, and what it means, is for `tomllib` to say; the tree only tells where it stands.
"""

import tomllib
from collections.abc import Iterator
from typing import Any

import tree_sitter_toml
from tree_sitter import Language, Parser

from .jsonc import BOM, Element

_TOML = Language(tree_sitter_toml.language())


class TomlElement(Element):
    """A table, a pair, a value or a comment; `start` and `end` are offsets in the bytes of the file."""

    def parts(self) -> Iterator["TomlElement"]:
        """What it consists of, in order: brackets, keys, pairs, values, comments."""
        return (TomlElement(child, self._shift) for child in self._node.children)

    def value(self) -> Any:
        """The value itself."""
        return tomllib.loads(f"x = {self.text()}")["x"]

    def path(self) -> list[str]:
        """The names in a key, such as two in `a."b c"`."""
        found, names = tomllib.loads(f"{self.text()} = 0"), list[str]()
        while isinstance(found, dict):
            ((name, found),) = found.items()
            names.append(name)
        return names


def parse_toml(text: bytes) -> TomlElement:
    """The document in `text`, whose parts are comments, pairs and tables. Raises ValueError as `toml_value` does."""
    toml_value(text)
    return TomlElement(Parser(_TOML).parse(text).root_node, 0)


def toml_value(text: bytes) -> dict[str, Any]:
    """What the document in `text` means. Raises ValueError, with line and column, for what is no TOML."""
    try:
        return tomllib.loads(text.removeprefix(BOM).decode())
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not TOML: {error}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


Span = tuple[int, int]


def spans(text: bytes, path: list[str]) -> list[Span]:
    """Where the tables at `path` stand, in their order; those with nothing but blanks between them are one.

    Comments behind the last pair of a table are not part of it, but for one on that line.
    """
    found: list[Span] = []
    for table in parse_toml(text).parts():
        if table.kind not in ("table", "table_array_element"):
            continue
        parts = list(table.parts())
        if parts[1].path()[: len(path)] != path:
            continue
        end = next(part.end for part in reversed(parts) if part.kind != "comment")
        end = max(part.end for part in parts if part.end == end or b"\n" not in text[end : part.end])
        # To the parser the blanks at the end of a line, and half of CRLF, may be a part of the pair.
        end = len(text[:end].rstrip(b" \t\r"))
        if found and not text[found[-1][1] : table.start].strip():
            found[-1] = (found[-1][0], end)
        else:
            found.append((table.start, end))
    if not found:
        raise ValueError(f"{path[-1]!r} has no table [{'.'.join(path)}] of its own: change it by hand")
    return found


def lead(text: bytes, newline: bytes) -> bytes:
    """What has to stand before a new table at the end."""
    if not text.strip(b"\xef\xbb\xbf \t\r\n"):
        return b"" if text.endswith((b"\n", b"\xef\xbb\xbf")) or not text else newline
    if not text.endswith(b"\n"):
        return newline * 2
    return b"" if text.endswith((b"\n\n", b"\n\r\n")) else newline


def without(text: bytes, found: list[Span]) -> bytes:
    """The text without these lines, and one of the empty lines around each."""
    for start, end in reversed(found):
        past = text.find(b"\n", end) + 1 or len(text)
        head, tail = text[:start], text[past:]
        if tail.startswith((b"\n", b"\r\n")):
            tail = tail[tail.index(b"\n") + 1 :]
        elif not tail and head.endswith((b"\n\n", b"\n\r\n")):
            head = head.removesuffix(b"\n").removesuffix(b"\r")
        text = head + tail
    return text

"""TOML as a tree whose parts know where they stand, as `jsonc` has JSON.

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
        return tomllib.loads(f"x = {self._text()}")["x"]

    def path(self) -> list[str]:
        """The names in a key, such as two in `a."b c"`."""
        found, names = tomllib.loads(f"{self._text()} = 0"), list[str]()
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

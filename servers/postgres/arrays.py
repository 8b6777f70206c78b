"""Parses and formats arrays as PostgreSQL writes them: `{1,NULL,"a \\"b\\""}`, with braces around each dimension."""

import re
from collections.abc import Callable, Sequence
from typing import Any

_TOKEN = re.compile(r'([{}])|"((?:[^"\\]|\\.)*)"|([^{}",]+)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r'(["\\])')


def parse_array(text: str) -> list[Any]:
    """Parse an array into a list of strings, with None for NULL, or of lists if there are several dimensions.

    `text` must be the array as PostgreSQL writes it if its bounds begin with 1 and commas separate its elements.
    """
    if '"' not in text and "{" not in text[1:]:
        return [None if plain == "NULL" else plain for plain in text[1:-1].split(",")] if text != "{}" else []
    outer: list[Any] = []
    open_lists = [outer]
    for token in _TOKEN.finditer(text):
        brace, quoted, plain = token.groups()
        if brace == "{":
            inner: list[Any] = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif brace == "}":
            open_lists.pop()
        elif quoted is not None:
            open_lists[-1].append(_ESCAPED.sub(r"\1", quoted))
        else:
            open_lists[-1].append(None if plain == "NULL" else plain)
    (elements,) = outer
    return list(elements)


def format_array(values: Sequence[Any], format_element: Callable[[Any], str]) -> str:
    """Format an array; `format_element` formats each value that is neither a list nor None."""
    texts = []
    for value in values:
        if value is None:
            texts.append("NULL")
        elif isinstance(value, list):
            texts.append(format_array(value, format_element))
        else:
            texts.append('"' + _SPECIAL.sub(r"\\\1", format_element(value)) + '"')
    return "{" + ",".join(texts) + "}"

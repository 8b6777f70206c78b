"""The filters that templates can use. Each call counts as a step, and the size of each result is limited."""

import json
import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context, Undefined

from shared.text import code_block

from ..errors import PromptError
from .budget import MAX_CHARACTERS, MAX_ITEMS, current_budget

COMPARED, INDEXED, ITERATED, JOINED = "_compared", "_indexed", "_iterated", "_joined"
"""Filters that `sandbox` inserts into templates, to count what Jinja would not: comparisons, values of which an item
or a slice is taken, the items of loops, and the texts around `~`. `sandbox` refuses them if an author uses them."""


def require_size(size: int, maximum: int = MAX_CHARACTERS) -> None:
    """Raise PromptError if a text or a list would have a size larger than `maximum`."""
    if size > maximum:
        raise PromptError("too_large", f"a text or list in a template grows larger than {maximum:,}")


def count_created(value: Any) -> Any:
    """Count the size of the value (see `RenderBudget.count_created`), and return the value."""
    if isinstance(value, str):
        require_size(len(value))
        current_budget.get().count_created(len(value))
    elif isinstance(value, list | tuple):
        require_size(len(value), MAX_ITEMS)
        current_budget.get().count_created(len(value))
    return value


def format_value(value: Any) -> str:
    """Return the text of a value; "" for None. Raises TypeError for a list, since it has no text form."""
    if value is None:
        return ""
    if isinstance(value, str | int | float | Undefined):
        return str(value)
    raise TypeError("a list can't be written directly: use join, or a loop")


def _join(value: Any, separator: str = "") -> str:
    texts = [format_value(item) for item in _require_items(value)]
    require_size(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def _replace(value: Any, old: str, new: str) -> str:
    text = format_value(value)
    # If `old` is empty, `count` counts it before, between and after all characters, where it is replaced.
    count = text.count(old)
    require_size(len(text) + count * max(len(new) - len(old), 0))
    return text.replace(old, new)


def _indent(value: Any, width: int = 4, first: bool = False) -> str:
    lines = format_value(value).split("\n")
    require_size(sum(map(len, lines)) + len(lines) * (1 + max(width, 0)))
    margin = " " * width
    rest = [margin + line if line.strip() else line for line in lines[not first :]]
    return "\n".join(lines[: not first] + rest)


def _require_items(value: Any) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(
            "loops and the filters join, sort and unique require a list: declare the argument with `type: list`"
        )
    return list(value)


def _iterate(value: Any) -> Iterable[Any]:
    budget = current_budget.get()
    for item in _require_items(value):
        budget.count_step()
        yield item


def _text_filter(function: Callable[..., str]) -> Callable[..., str]:
    return lambda value, *rest: function(format_value(value), *rest)


_UNCOUNTED: dict[str, Callable[..., Any]] = {
    "capitalize": _text_filter(str.capitalize),
    # This is like Jinja's filter, except that an empty value counts as missing, as for arguments.
    "default": lambda value, default_value="", boolean=True: (
        default_value if isinstance(value, Undefined) or value is None or (boolean and not value) else value
    ),
    # Remove all but word characters from the language: with a line break, an argument could end the block too early.
    "fence": lambda value, language="": code_block(format_value(value), re.sub(r"[^\w+#.-]", "", language)),
    "first": lambda value: next(iter(value), ""),
    "float": float,
    "indent": _indent,
    "int": int,
    "join": _join,
    "last": lambda value: value[-1] if value else "",
    "length": lambda value: len(value if isinstance(value, str) else _require_items(value)),
    "lower": _text_filter(str.lower),
    "replace": _replace,
    "reverse": lambda value: value[::-1],
    "sort": lambda value: sorted(_require_items(value)),
    "title": _text_filter(str.title),
    "tojson": lambda value: json.dumps(value, ensure_ascii=False),
    "trim": _text_filter(str.strip),
    "unique": lambda value: list(dict.fromkeys(_require_items(value))),
    "upper": _text_filter(str.upper),
    COMPARED: lambda value: value,
    INDEXED: lambda value: value,
    ITERATED: _iterate,
    JOINED: _join,
}


def _count(function: Callable[..., Any], *, counts_size: bool) -> Callable[..., Any]:
    """Return a filter that counts its calls and, if it `counts_size`, the size of what it returns."""

    # Because of `pass_context`, Jinja does not run filters while it compiles a template.
    @pass_context
    @wraps(function)
    def counted(_: Context, *args: Any, **keywords: Any) -> Any:
        current_budget.get().count_step()
        result = function(*args, **keywords)
        return count_created(result) if counts_size else result

    return counted


FILTERS = {
    name: _count(function, counts_size=name not in (COMPARED, ITERATED)) for name, function in _UNCOUNTED.items()
}

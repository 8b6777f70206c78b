"""Names of tables and columns: in SQL, for readers, and the one that was perhaps meant."""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from itertools import islice

__all__ = ["listed", "nearest", "quoted", "select", "short", "shown"]

_PLAIN = re.compile(r"[^\W\d]\w*")
_COMPARED = 5_000
"""Names."""
_LONGEST = 100
"""Characters of a name that are compared."""


def quoted(name: str) -> str:
    """The name as an identifier in SQL, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def select(what: str, table: str, rest: str) -> str:
    """A query of the table of that name; the other parts are SQL of our own."""
    return f"SELECT {what} FROM {quoted(table)} {rest}"  # noqa: S608 - the name is quoted


def shown(name: str) -> str:
    """The name in a text: in quotes, as in JSON, where it is not a plain word."""
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def listed(names: Iterable[str | None]) -> str:
    """Names between commas; what has none is an expression."""
    return ", ".join("(expression)" if name is None else shown(name) for name in names)


def short(text: str, most: int) -> str:
    """The first `most` characters, and how many there are where that is not all."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text)} characters)"


def nearest(name: str, names: Iterable[str]) -> Sequence[str]:
    """Those of the `names` that are most like `name`, three at most."""
    folded = {one[:_LONGEST].lower(): one for one in islice(names, _COMPARED) if len(one) <= _LONGEST}
    return [folded[one] for one in difflib.get_close_matches(name[:_LONGEST].lower(), folded)]

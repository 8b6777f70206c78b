"""The URIs of the resources: `sqlite:///{db}/schema`, `/{db}/{table}`, `/{db}/{table}/{+key}`, or in other schemes.

A name may contain any character, so it is percent-encoded as one segment. A table called `schema` is written
`%73chema`. A key is that of a row; its values are percent-encoded one by one and separated by commas.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote, unquote

MAX_COMPLETED_VALUE_LENGTH = 200
"""Maximum number of characters of each value in a key that is suggested as completion."""
MAX_COMPLETED_KEYS = 100
"""Maximum number of keys that are suggested as completion."""
COMPLETION_SECONDS = 1.0
"""Time limit in seconds for finding these keys."""
INSIGHTS_URI = "memo://insights"
"""The URI of the findings that clients have added with the tool `append_insight`."""

_SCHEMA = "schema"


class Target(NamedTuple):
    """The target of a URI."""

    database: str
    table: str | None = None
    """None for the whole schema."""
    key: str | None = None
    """One row of the table, as `join_key` writes it; None for all."""


class Uris:
    """The URIs of one scheme."""

    def __init__(self, scheme: str) -> None:
        self.scheme = scheme
        self._prefix = f"{scheme}:///"
        self._pattern = re.compile(rf"{self._prefix}([^/?#]+)/([^/?#]+)(?:/(.+))?", re.DOTALL)

    def parse(self, uri: str) -> Target | None:
        """Return the target of `uri`, which may not exist; None if it is not the URI of a schema, table or row."""
        match = self._pattern.fullmatch(uri)
        if match is None:
            return None
        database, table, key = match.groups()
        if table == _SCHEMA and key is None:
            return Target(unquote(database))
        # Clients may encode the same key differently; `join_key` encodes it in its one canonical form.
        return Target(unquote(database), unquote(table), None if key is None else join_key(split_key(key)))

    def format(self, target: Target) -> str:
        """Return the URI of a target, in its one canonical form."""
        segments = [quote(target.database, safe=""), _SCHEMA]
        if target.table is not None:
            segments[1] = quote(target.table, safe="") if target.table != _SCHEMA else "%73chema"
        if target.key is not None:
            segments.append(target.key)
        return self._prefix + "/".join(segments)

    def format_database(self, name: str) -> str:
        """Return the URI of a database as a whole, which can be watched."""
        return f"{self._prefix}{quote(name, safe='')}"


def join_key(parts: Iterable[str]) -> str:
    """Percent-encode the values of a key, and join them by commas."""
    return ",".join(quote(part, safe="") for part in parts)


def split_key(key: str, columns: int | None = None) -> list[str]:
    """Return the values of a key in a URI. `columns` is the number of columns of the key, if known: with only one
    column, a comma is part of the value."""
    return [unquote(key)] if columns == 1 else [unquote(part) for part in key.split(",")]

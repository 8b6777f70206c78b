"""Parses and writes the URIs of resources: `sqlite:///{db}/schema`, `/{db}/{table}` and `/{db}/{table}/{+key}`.

Other engines have other schemes. A name may contain any character, so it is percent-encoded as one segment. A table
called `schema` is written `%73chema`. A key identifies a row. Its values are percent-encoded, and separated by
commas.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote, unquote

MAX_COMPLETED_VALUE_LENGTH = 200
"""Maximum number of characters of each value in a key that is suggested as a completion."""
MAX_COMPLETED_KEYS = 100
"""Maximum number of keys that are suggested as completions."""
COMPLETION_SECONDS = 1.0
"""Maximum number of seconds for finding these keys."""
INSIGHTS_URI = "memo://insights"
"""The URI of the findings that clients have added with the tool `append_insight`."""

_SCHEMA = "schema"


class Target(NamedTuple):
    """The target of a URI."""

    database: str
    table: str | None = None
    """The name of a table; None for the whole schema."""
    key: str | None = None
    """The key of one row of the table, as `join_key` writes it; None for all rows."""


class Uris:
    """Parses and writes the URIs with one scheme."""

    def __init__(self, scheme: str) -> None:
        self.scheme = scheme
        self._prefix = f"{scheme}:///"
        self._pattern = re.compile(rf"{self._prefix}([^/?#]+)/([^/?#]+)(?:/(.+))?", re.DOTALL)

    def parse(self, uri: str) -> Target | None:
        """Return the target of `uri`, which need not exist; None for any other form of URI."""
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
        """Return the URI of a whole database. It is no resource, but clients can subscribe to it."""
        return f"{self._prefix}{quote(name, safe='')}"


def join_key(parts: Iterable[str]) -> str:
    """Percent-encode the values of a key, and join them by commas."""
    return ",".join(quote(part, safe="") for part in parts)


def split_key(key: str, columns: int | None = None) -> list[str]:
    """Return the values of a key in a URI. `columns` is the number of columns of the key, if known: with only one
    column, a comma is part of the value."""
    return [unquote(key)] if columns == 1 else [unquote(part) for part in key.split(",")]

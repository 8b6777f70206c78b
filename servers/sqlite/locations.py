"""Where a database is, as other programs write it: `sqlite:///shop.db` and `file:shop.db` are a path."""

import re
from urllib.parse import unquote

from .engine.database import MEMORY

_SCHEME = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]{0,30})://|(?P<file>file):", re.IGNORECASE)


def read_location(given: str) -> str:
    """The path of a database that is given as a path or a URL.

    A path after `sqlite://` begins behind one more slash, as in SQLAlchemy: `sqlite:///shop.db` is `shop.db`, and
    `sqlite:////shop.db` is `/shop.db`. Raises ValueError for a URL of something else, or with parameters.
    """
    text = given.strip().strip("'\"")
    match = _SCHEME.match(text)
    if match is None:
        return given
    scheme = (match["scheme"] or match["file"]).lower().partition("+")[0]
    if scheme in ("postgres", "postgresql"):
        raise ValueError("a URL of PostgreSQL is for the PostgreSQL server: mcp-bundle-postgres")
    if scheme not in ("file", "sqlite", "sqlite3"):
        raise ValueError(f"a URL of {scheme} is not a SQLite database; give the path of a file")
    place, _, query = text[match.end() :].partition("?")
    if query:
        name = query.partition("=")[0][:40]
        raise ValueError(f"a URL has no parameter {name!r} here; a permission is written as --db NAME=PATH:ro")
    # file:///shop.db has an empty host before its path.
    path = unquote(place.removeprefix("/") if scheme != "file" else place)
    return MEMORY if path in ("", MEMORY) and scheme != "file" else path

"""The notations of other programs for the path of a database, such as `sqlite:///shop.db` and `file:shop.db`."""

import re
from urllib.parse import unquote

from .engine.database import MEMORY

_SCHEME = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]{0,30})://|(?P<file>file):", re.IGNORECASE)


def read_location(location: str) -> str:
    """Return the path of a database, given the path or a URL.

    A path after `sqlite://` begins after one more slash, as in SQLAlchemy: `sqlite:///shop.db` is `shop.db`, and
    `sqlite:////shop.db` is `/shop.db`. Raises ValueError for a URL of another kind, or with parameters.
    """
    text = location.strip().strip("'\"")
    match = _SCHEME.match(text)
    if match is None:
        return location
    scheme = (match["scheme"] or match["file"]).lower().partition("+")[0]
    if scheme in ("postgres", "postgresql"):
        raise ValueError("a PostgreSQL URL is for the PostgreSQL server: mcp-bundle-postgres")
    if scheme not in ("file", "sqlite", "sqlite3"):
        raise ValueError(f"a URL with {scheme} is not an SQLite database; specify the path of a file")
    url_path, _, query = text[match.end() :].partition("?")
    if query:
        name = query.partition("=")[0][:40]
        raise ValueError(f"a URL has no parameter {name!r} here; a permission is written as --db NAME=PATH:ro")
    # file:///shop.db has an empty host before its path.
    path = unquote(url_path.removeprefix("/") if scheme != "file" else url_path)
    return MEMORY if path in ("", MEMORY) and scheme != "file" else path

"""The database of a small shop, for first steps."""

import sqlite3
from contextlib import closing
from pathlib import Path

__all__ = ["make_sample"]


def make_sample(path: Path) -> None:
    """Makes the shop, some 600 rows, in a new file at `path`. Raises ValueError where it can't be made."""
    script = Path(__file__).with_name("sample.sql").read_text(encoding="utf-8")
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
    except sqlite3.Error as error:
        raise ValueError(f"the sample can't be made at {path}: {error}") from None

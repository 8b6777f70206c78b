"""What ends with the server: directories, and the database of a small shop for first steps.

It stands by itself for the demo, which makes the shop without the library that connections are made of.
"""

import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path

__all__ = ["make_sample", "temporary_directory"]


def temporary_directory(what: str) -> AbstractContextManager[str]:
    """A new directory for `what`, whose path it gives; all that is in it goes at the end of the block."""
    # It loads three kinds of compression, and most servers never need it.
    import tempfile

    return tempfile.TemporaryDirectory(prefix=f"sqlite-{what}-", ignore_cleanup_errors=True)


def make_sample(path: Path) -> None:
    """Makes the shop, some 600 rows, in a new file at `path`. Raises ValueError where it can't be made."""
    script = Path(__file__).with_name("sample.sql").read_text(encoding="utf-8")
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
    except sqlite3.Error as error:
        raise ValueError(f"the sample can't be made at {path}: {error}") from None

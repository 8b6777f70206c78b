"""Commits by this program, as it reports them to the database watch."""

from collections.abc import Callable
from typing import NamedTuple


class Commit(NamedTuple):
    """Changes that were just committed."""

    tables: frozenset[str]
    """Tables whose rows were changed, in the form in which PostgreSQL writes their names."""
    schema_changed: bool
    """True if the schema was changed."""
    backend: int
    """The id of the PostgreSQL process that made the changes, whose notifications the watch ignores."""


CommitCallback = Callable[[Commit], None]
"""Called right after COMMIT; must not block."""


def ignore_commit(_: Commit) -> None:
    """Do nothing."""

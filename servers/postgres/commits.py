"""This server's own commits, for the database watch."""

from collections.abc import Callable
from typing import NamedTuple


class Commit(NamedTuple):
    """Changes that were just committed."""

    tables: frozenset[str]
    """Tables whose rows were changed, in the form in which PostgreSQL writes their names."""
    schema_changed: bool
    """True if the schema was changed."""
    backend: int
    """The process of the server that made the changes; the notices that it sends are ignored."""


CommitCallback = Callable[[Commit], None]
"""Called right after COMMIT; must not block."""


def ignore_commit(_: Commit) -> None:
    """Do nothing."""

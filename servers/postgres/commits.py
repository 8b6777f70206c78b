"""What this server itself has changed, for who watches the database."""

from collections.abc import Callable
from typing import NamedTuple


class Commit(NamedTuple):
    """Changes that were just committed."""

    tables: frozenset[str]
    """Those whose rows were changed, as PostgreSQL writes their names."""
    defined: bool
    """Whether the schema was changed."""
    backend: int
    """The process of the server that made them, whose notices tell nothing new."""


Committed = Callable[[Commit], None]
"""Called right after COMMIT; must not wait."""


def ignore_commit(_: Commit) -> None:
    """Nobody watches the database."""

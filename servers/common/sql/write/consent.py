"""The user's consent to changes: their extent, and the extent that the user agreed to.

If the user must be asked before changes, the changes are first made and rolled back, which gives the figures for the
question; nothing is locked while the user decides. After the user has agreed, the changes are made again, and
committed only if the figures are still the same.
"""

from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import format_names


class Figures(NamedTuple):
    """The extent of changes."""

    rows: int
    """Total number of rows, including changes by triggers and foreign keys, and inside virtual tables."""
    affected: tuple[int, ...]
    """Number of rows that each statement changes directly."""
    tables: tuple[str, ...]
    defined: bool
    """True if the schema changes."""

    def __str__(self) -> str:
        parts = ["the schema changes"] if self.defined else []
        if self.rows or not parts:
            tables = f" ({format_names(self.tables)})" if self.tables else ""
            parts.append(f"{self.rows:,} {'row changes' if self.rows == 1 else 'rows change'}{tables}")
        return " and ".join(parts)


class Consent(NamedTuple):
    """The changes allowed without asking, and those that the user has agreed to."""

    rows: int | None = None
    """Number of rows that may change; None if the user is never asked."""
    agreed: Figures | None = None

    def covers(self, figures: Figures) -> bool:
        """Return True if these changes may be made. Raises SqlError with code `changed` if the user has agreed to
        different changes."""
        if self.rows is None or (figures.rows <= self.rows and not figures.defined) or figures == self.agreed:
            return True
        if self.agreed is None:
            return False
        reason = "the database has changed since the user was asked"
        quoted = (f"asked: {self.agreed}", f"now: {figures}")
        raise SqlError("changed", reason, "Call again to ask the user again.", quoted)

"""The user's consent to changes: how much changes, and what was agreed to.

If the user must be asked before changes, the changes are first made and rolled back, which gives the figures to ask
with; nothing is locked while a human thinks. With the user's consent they are made again, and committed only where
the figures are still the same.
"""

from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import format_names


class Figures(NamedTuple):
    """The extent of changes."""

    rows: int
    """Rows in all: also by triggers and foreign keys, and within virtual tables."""
    affected: tuple[int, ...]
    """Rows that each statement changes directly."""
    tables: tuple[str, ...]
    defined: bool
    """True if the schema changes."""

    def __str__(self) -> str:
        parts = ["the schema changes"] if self.defined else []
        if self.rows or not parts:
            where = f" ({format_names(self.tables)})" if self.tables else ""
            parts.append(f"{self.rows:,} {'row changes' if self.rows == 1 else 'rows change'}{where}")
        return " and ".join(parts)


class Consent(NamedTuple):
    """The changes that are allowed without asking, and those that the user has agreed to."""

    rows: int | None = None
    """Rows that may change; None if the user is never asked."""
    agreed: Figures | None = None

    def covers(self, figures: Figures) -> bool:
        """Return True if these changes may be made. Raises SqlError `changed` if the user has agreed to others."""
        if self.rows is None or (figures.rows <= self.rows and not figures.defined) or figures == self.agreed:
            return True
        if self.agreed is None:
            return False
        reason = "the database has changed since the user was asked"
        quoted = (f"asked: {self.agreed}", f"now: {figures}")
        raise SqlError("changed", reason, "Call again to have the user asked again.", quoted)

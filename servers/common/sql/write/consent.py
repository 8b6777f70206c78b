"""The user's consent to changes of a database.

If the user must be asked, the changes are first made and rolled back. This gives the figures that the user must
confirm: numbers of rows and names of tables. Nothing is locked while the user decides. After the user has agreed, the
changes are made again, and committed only if the figures are still the same.
"""

from typing import NamedTuple

from ..errors import SqlError
from ..texts import format_names


class Figures(NamedTuple):
    """What the changes of a call affect."""

    rows: int
    """Number of changed rows, including those changed by triggers and foreign keys, and inside virtual tables."""
    affected: tuple[int, ...]
    """Number of rows that each statement changes directly."""
    tables: tuple[str, ...]
    """Names of the tables whose rows may change."""
    schema_changed: bool
    """True if the schema changes."""

    def __str__(self) -> str:
        parts = ["the schema changes"] if self.schema_changed else []
        if self.rows or not parts:
            tables = f" ({format_names(self.tables)})" if self.tables else ""
            parts.append(f"{self.rows:,} {'row changes' if self.rows == 1 else 'rows change'}{tables}")
        return " and ".join(parts)


class Consent(NamedTuple):
    """The changes that are allowed without asking the user, and those that the user has agreed to."""

    rows: int | None = None
    """Number of rows that may change without asking the user; None if the user is never asked."""
    agreed: Figures | None = None
    """The figures that the user has agreed to; None if the user has not been asked yet."""

    def covers(self, figures: Figures) -> bool:
        """Return True if these changes may be made. Raises SqlError with code `changed` if the user has agreed to
        different changes."""
        if self.rows is None or (figures.rows <= self.rows and not figures.schema_changed) or figures == self.agreed:
            return True
        if self.agreed is None:
            return False
        reason = "the database has changed since the user was asked"
        quoted = (f"asked: {self.agreed}", f"now: {figures}")
        raise SqlError("changed", reason, "Call again to ask the user again.", quoted)

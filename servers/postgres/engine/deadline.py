"""The limits of statements, and the deadline of a piece of work."""

import time
from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.jobs import WorkDeadline


class Limits(NamedTuple):
    """The operator's limits for one statement."""

    timeout: float = 30.0
    """Maximum number of seconds that the statement may take."""
    busy_timeout: float = 5.0
    """Maximum number of seconds to wait for a lock that another session holds."""
    value_bytes: int = 16_000_000
    """Maximum size in bytes of one row, which may be a single value, and of all rows of one result together."""


class Deadline(WorkDeadline):
    """The deadline of a piece of work in a database that may not respond."""

    @property
    def left(self) -> float:
        """Seconds until the deadline; 0 after it."""
        return max(self._end - time.monotonic(), 0)

    def check(self) -> None:
        """Raise SqlError with code `timeout` after the deadline."""
        if self.left == 0:
            raise self.error()

    def error(self, *, is_responding: bool = True) -> SqlError:
        """Return the error for a missed deadline. `is_responding` is false if the database does not respond at
        all."""
        if self.is_committing:
            return self._timeout()
        if not is_responding:
            reason = f"the database did not answer within {self.timeout:.3g} seconds"
            suggestion = "Try again later: it is unreachable or overloaded, or its pooler has no free connection."
            return SqlError("unavailable", reason, suggestion)
        return self._timeout().add_place(self.position)

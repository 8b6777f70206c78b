"""Authorizes statements that the event loop itself runs: only those that end immediately whatever the values are.

SQLite can only be stopped between two instructions of its virtual machine. So the allowed functions take time
proportional to their values, and no instruction may read a whole table, as `count(*)` does, or belong to a virtual
table. A refusal here is not an error; a thread then runs the statement.
"""

import sqlite3
from collections.abc import Iterable

from servers.sqlite.engine.hiding import HiddenSchema
from servers.sqlite.engine.policy import Policy

_MAX_ACTIONS = 500
"""Maximum number of actions of one statement; more take long to compile."""
_OVER_AT_ONCE = frozenset(
    {
        *("abs", "avg", "ceil", "ceiling", "coalesce", "date", "datetime", "first_value", "floor", "glob", "hex"),
        *("ifnull", "iif", "json_extract", "->", "->>", "json_type", "json_valid", "julianday", "lag", "last_value"),
        *("lead", "length", "like", "lower", "max", "min", "nullif", "octet_length", "quote", "rank", "round"),
        *("row_number", "sign", "strftime", "substr", "substring", "sum", "time", "total", "typeof", "unicode"),
        *("unixepoch", "upper"),
    }
)


class QuickPolicy(Policy):
    """The authorizer of a connection for statements that end at once.

    It refuses reads of `virtual_tables` and of the tables of `elsewhere`.
    """

    def __init__(
        self, virtual_tables: Iterable[str], elsewhere: Iterable[str], hidden: HiddenSchema | None = None
    ) -> None:
        super().__init__(False, virtual_tables, elsewhere=elsewhere, hidden=hidden)

    def __call__(
        self, action: int, first: str | None, second: str | None, schema: str | None, source: str | None
    ) -> int:
        """Decide whether SQLite may do this."""
        verdict = super().__call__(action, first, second, schema, source)
        if self.action_count > _MAX_ACTIONS or not _is_over_at_once(
            action, (first or "").lower(), (second or "").lower()
        ):
            return sqlite3.SQLITE_DENY
        return verdict


def _is_over_at_once(action: int, first: str, second: str) -> bool:
    match action:
        case sqlite3.SQLITE_SELECT:
            return True
        case sqlite3.SQLITE_READ:
            return not first.startswith("pragma_")
        case sqlite3.SQLITE_FUNCTION:
            return second in _OVER_AT_ONCE
        case sqlite3.SQLITE_PRAGMA:
            return first == "schema_version"
    return False

"""Authorizes statements that the event loop itself runs. They must be stoppable at any moment.

SQLite can only be stopped between two instructions of its virtual machine. So the only functions allowed are those
whose time is proportional to the size of their arguments. Instructions that read a whole table are refused, such as
`count(*)`, and so are virtual tables. A client never sees these refusals: a thread runs the statement instead.
"""

import sqlite3
from collections.abc import Iterable

from .hiding import HiddenSchema
from .policy import Policy

_MAX_ACTIONS = 500
"""Maximum number of actions of one statement; a statement with more takes long to compile."""
_QUICK_FUNCTIONS = frozenset(
    {
        *("abs", "avg", "ceil", "ceiling", "coalesce", "date", "datetime", "first_value", "floor", "glob", "hex"),
        *("ifnull", "iif", "json_extract", "->", "->>", "json_type", "json_valid", "julianday", "lag", "last_value"),
        *("lead", "length", "like", "lower", "max", "min", "nullif", "octet_length", "quote", "rank", "round"),
        *("row_number", "sign", "strftime", "substr", "substring", "sum", "time", "total", "typeof", "unicode"),
        *("unixepoch", "upper"),
    }
)


class QuickPolicy(Policy):
    """The authorizer of a connection that the event loop uses.

    It refuses reads of `virtual_tables` and of `uninterruptible_tables`.
    """

    def __init__(
        self, virtual_tables: Iterable[str], uninterruptible_tables: Iterable[str], hidden: HiddenSchema | None = None
    ) -> None:
        super().__init__(False, virtual_tables, uninterruptible_tables=uninterruptible_tables, hidden=hidden)

    def __call__(
        self, action: int, first: str | None, second: str | None, schema: str | None, source: str | None
    ) -> int:
        """Return SQLITE_OK if SQLite may perform this action, else SQLITE_DENY."""
        verdict = super().__call__(action, first, second, schema, source)
        match action:
            case sqlite3.SQLITE_SELECT:
                is_quick = True
            case sqlite3.SQLITE_READ:
                is_quick = not (first or "").lower().startswith("pragma_")
            case sqlite3.SQLITE_FUNCTION:
                is_quick = (second or "").lower() in _QUICK_FUNCTIONS
            case sqlite3.SQLITE_PRAGMA:
                is_quick = (first or "").lower() == "schema_version"
            case _:
                is_quick = False
        return verdict if is_quick and self.action_count <= _MAX_ACTIONS else sqlite3.SQLITE_DENY

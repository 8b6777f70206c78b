"""Authorizes statements by the actions that SQLite reports (https://sqlite.org/c3ref/set_authorizer.html).

While SQLite compiles a statement, it calls the authorizer for each action of the statement and of the views and
triggers that it uses. Actions that this module does not allow are refused. The text of the statement is never
examined.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from .hiding import BYPASSES_HIDING, CHANGES_HIDDEN, HiddenSchema
from .sql import quote

_READ_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE})
_ROW_CHANGES = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
_TABLE_USES = _ROW_CHANGES | {sqlite3.SQLITE_READ, sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_REINDEX}
_DEFINITIONS = frozenset(
    {
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_CREATE_TRIGGER,
        sqlite3.SQLITE_CREATE_VTABLE,
        sqlite3.SQLITE_DROP_TABLE,
        sqlite3.SQLITE_DROP_INDEX,
        sqlite3.SQLITE_DROP_VIEW,
        sqlite3.SQLITE_DROP_TRIGGER,
        sqlite3.SQLITE_DROP_VTABLE,
        sqlite3.SQLITE_ALTER_TABLE,
        sqlite3.SQLITE_REINDEX,
        sqlite3.SQLITE_ANALYZE,
    }
)
_VIEW_ACTIONS = frozenset({sqlite3.SQLITE_CREATE_TEMP_VIEW, sqlite3.SQLITE_DROP_TEMP_VIEW})
# SQLite reports writes to these tables as a side effect of opening a virtual table or of a rename. Allowing them is
# safe: SQLite itself refuses statements that write to these tables, and it reports CREATE and the like as actions of
# their own. It does not for a trigger in `temp` on a table of another schema, which is recognized by the row that is
# inserted into `sqlite_temp_master`.
_SCHEMA_TABLES = frozenset({"sqlite_master", "sqlite_temp_master"})
CLOSED_FUNCTIONS = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"})
"""The functions that no statement may call."""
# One call of these functions may take hours, since the time grows with the product of the sizes of two arguments, and
# SQLite can't be interrupted during a call. (The same applies to LIKE and GLOB, but deadline.py limits their
# patterns.)
_UNINTERRUPTIBLE = frozenset(
    {"instr", "replace", "trim", "ltrim", "rtrim", "json_patch", "geopoly_overlap", "geopoly_within"}
)
_UNINTERRUPTIBLE_CALL = re.compile(rf"\b(?:{'|'.join(sorted(_UNINTERRUPTIBLE))})\W", re.IGNORECASE)
_ALLOWED_MODULES = frozenset(
    {"json_each", "json_tree", "fts3", "fts4", "fts5", "fts4aux", "fts5vocab", "rtree", "rtree_i32", "geopoly"}
)
# These pragmas only read: their argument is the name of the object that they describe.
_DESCRIBING_PRAGMAS = frozenset(
    {
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
    }
)
# These pragmas are only allowed without an argument, because with one they would change something.
_READING_PRAGMAS = frozenset(
    {
        "application_id",
        "auto_vacuum",
        "collation_list",
        "compile_options",
        "data_version",
        "encoding",
        "foreign_keys",
        "freelist_count",
        "function_list",
        "journal_mode",
        "page_count",
        "page_size",
        "pragma_list",
        "schema_version",
        "user_version",
    }
)
# When an R-tree is first read, it compiles statements that change its shadow tables (those with these suffixes), so
# they must be allowed. On a connection that only reads, SQLite runs no such statement, not even one from a client.
_RTREE_SUFFIXES = ("_node", "_rowid", "_parent")
# The stored statement of a virtual table begins like this. Every repetition is possessive, so that no part of a name
# or a comment can be taken for USING.
_NAME = r"""(?:"(?:[^"]|"")*+"|'(?:[^']|'')*+'|`(?:[^`]|``)*+`|\[[^\]]*+\]|[\w$]++)"""
_BLANK = r"(?:\s++|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+"
_VIRTUAL_TABLE = re.compile(rf"""CREATE VIRTUAL TABLE\s+{_NAME}{_BLANK}USING{_BLANK}["'`\[]?(\w+)""", re.IGNORECASE)
ALLOW_CHANGES = "The operator can allow changes with --allow-write, or --db NAME=PATH:rw."
_REASONS = {
    sqlite3.SQLITE_ATTACH: "it opens or writes another file (ATTACH, VACUUM)",
    sqlite3.SQLITE_DETACH: "it detaches a database",
    sqlite3.SQLITE_TRANSACTION: "it begins or ends a transaction, which every call does automatically",
    sqlite3.SQLITE_SAVEPOINT: "it sets a savepoint, which every call does automatically",
}
_ONE_TRANSACTION = "Omit BEGIN, COMMIT and the like: the statements of one call are one transaction."
_SUGGESTIONS = {
    sqlite3.SQLITE_TRANSACTION: _ONE_TRANSACTION,
    sqlite3.SQLITE_SAVEPOINT: _ONE_TRANSACTION,
    sqlite3.SQLITE_ATTACH: (
        "The operator can serve several databases with --attach, so that statements can read the others. VACUUM "
        "can be run with sqlite3."
    ),
    sqlite3.SQLITE_PRAGMA: "The operator can run it with sqlite3.",
}


class Policy:
    """The authorizer of one connection. It allows statements that read, and if `writable`, those that change the
    database.

    `closed_modules` are the virtual tables that no statement may read. With `views`, temporary views may be created.
    `uninterruptible_tables` are tables whose use calls functions that can't be interrupted. The policy refuses to use
    them, and to call such functions; if it is None, it allows both. `advice` is the suggestion for clients that try
    to change a read-only database.
    """

    def __init__(
        self,
        writable: bool,
        closed_modules: Iterable[str] = (),
        *,
        views: bool = False,
        uninterruptible_tables: Iterable[str] | None = None,
        advice: str = ALLOW_CHANGES,
        hidden: HiddenSchema | None = None,
    ) -> None:
        self._allowed_modules = _ALLOWED_MODULES
        self.hidden = hidden
        """The hidden names; None if nothing is hidden."""
        self.schemas: Sequence[str] = ("main",)
        """The schema names of the database itself and of attached ones, which are read-only."""
        self._selects = self._reads_table = False
        self._advice = advice
        self._writable = writable
        self._views = views
        self._uninterruptible_tables = None if uninterruptible_tables is None else frozenset(uninterruptible_tables)
        self._closed_modules = frozenset(closed_modules)
        self._lifted = False
        self._only_tables = False
        self.action_count = 0
        """Number of actions that SQLite has reported since `reset`; 0 if it used a statement that was already
        compiled."""
        self.refusal: str | None = None
        """The reason for the last refusal."""
        self.suggestion = ""
        """A suggestion for the last refusal; may be empty."""
        self.uninterruptible = False
        """True if a statement was refused because SQLite could not be interrupted while running it."""
        self.changes_schema = False
        """True if a statement that was compiled since `reset` changes the schema."""
        self.changed: set[str] = set()
        """The tables that statements compiled since `reset` change, directly or by triggers."""

    def allow_modules(self, names: Iterable[str]) -> None:
        """Allow virtual tables of these modules as well, because extensions of the operator have added them."""
        self._allowed_modules = _ALLOWED_MODULES.union(names)

    def reset(self) -> None:
        """Forget what was recorded about earlier statements."""
        self.action_count, self.uninterruptible, self.changes_schema, self.changed = 0, False, False, set()
        self.refusal, self.suggestion = None, ""
        self._selects = self._reads_table = False

    def is_closed(self, table: str) -> bool:
        """Return True if no statement may read the table with that name."""
        return table.lower() in self._closed_modules

    @contextmanager
    def lift(self) -> Iterator[None]:
        """Allow everything that is compiled within the block, and record nothing. Use it for this program's own
        statements."""
        self._lifted = True
        try:
            yield
        finally:
            self._lifted = False

    @contextmanager
    def allow_compiling(self) -> Iterator[None]:
        """Within the block, allow functions that can't be interrupted: statements are compiled there, but not run."""
        tables, self._uninterruptible_tables = self._uninterruptible_tables, None
        try:
            yield
        finally:
            self._uninterruptible_tables = tables

    @contextmanager
    def allow_only_tables(self) -> Iterator[None]:
        """Allow CREATE TABLE within the block, and no other change."""
        self._only_tables = True
        try:
            yield
        finally:
            self._only_tables = False

    def __call__(
        self, action: int, first: str | None, second: str | None, schema: str | None, source: str | None
    ) -> int:
        """Return SQLITE_OK if SQLite may perform this action, else SQLITE_DENY.

        The meaning of `first` and `second` depends on the action. `source` is the view or trigger that causes it.
        """
        self.action_count += 1
        if self._lifted:
            return sqlite3.SQLITE_OK
        first = first or ""
        slow_tables = self._uninterruptible_tables
        # Check tables as well, since SQLite does not report calls in a generated column, a CHECK or an index.
        if slow_tables is not None and (
            (second or "").lower() in _UNINTERRUPTIBLE
            if action == sqlite3.SQLITE_FUNCTION
            else action in _TABLE_USES and first.lower() in slow_tables
        ):
            self.uninterruptible = True
            return sqlite3.SQLITE_DENY
        reason = self._find_reason(action, first, second, schema)
        if reason is None and self.hidden is not None:
            # SQLite reports the reads of a SELECT after the SELECT itself, but before it if the SELECT is part of an
            # expression.
            if action == sqlite3.SQLITE_SELECT:
                self._selects = True
                reason = BYPASSES_HIDING if self._reads_table else None
            else:
                reason = self.hidden.find_reason(action, first, second, schema, source, self._selects)
                if action == sqlite3.SQLITE_READ and reason is None and not self._selects:
                    self._reads_table |= self.hidden.is_guarded_read(first, schema, source)
        if reason is None:
            return sqlite3.SQLITE_OK
        self.refusal, self.suggestion = reason, _SUGGESTIONS.get(action, "")
        if not self._writable and action in _ROW_CHANGES | _DEFINITIONS:
            self.suggestion = self._advice
        elif schema == "temp" and first in _SCHEMA_TABLES:
            self.suggestion = "Create a permanent table, or use WITH."
        return sqlite3.SQLITE_DENY

    def _find_reason(self, action: int, first: str, second: str | None, schema: str | None) -> str | None:
        if action == sqlite3.SQLITE_READ:
            return "it reads a virtual table that is not allowed" if self.is_closed(first) else None
        if action in _READ_ACTIONS or (action == sqlite3.SQLITE_UPDATE and first in _SCHEMA_TABLES):
            return None
        if action == sqlite3.SQLITE_INSERT and first == "sqlite_master" and schema != "temp":
            return None
        if action == sqlite3.SQLITE_FUNCTION:
            return f"it calls {second}()" if (second or "").lower() in CLOSED_FUNCTIONS else None
        if action == sqlite3.SQLITE_PRAGMA:
            name = first.lower()
            if name in _DESCRIBING_PRAGMAS or (name in _READING_PRAGMAS and second is None):
                return None
            return f"it is PRAGMA {name}" + (" with a value" if name in _READING_PRAGMAS else "")
        if self._views and (action in _VIEW_ACTIONS or (action in _ROW_CHANGES and schema == "temp")):
            return None
        if action in _ROW_CHANGES or action in _DEFINITIONS:
            return self._check_change(action, first, second, schema)
        return _REASONS.get(action, "it does something that this server does not allow")

    def _check_change(self, action: int, first: str, second: str | None, schema: str | None) -> str | None:
        is_attached = schema in self.schemas[1:]
        if (is_attached or not self._writable) and action in _ROW_CHANGES and first.endswith(_RTREE_SUFFIXES):
            return None
        if not self._writable:
            return "it changes the database"
        if is_attached:
            return "it changes a database other than the one given as `database`"
        if schema == "temp" and self.hidden is not None and self.hidden.visible_columns(first) is not None:
            return CHANGES_HIDDEN
        if schema == "temp":
            or_hidden = "" if self.hidden is None else ", or a table in which the operator hides something"
            return f"it creates or changes a temporary object{or_hidden}"
        # A new table with UNIQUE or PRIMARY KEY also creates indexes.
        if self._only_tables and not (
            action == sqlite3.SQLITE_CREATE_TABLE
            or (action == sqlite3.SQLITE_INSERT and first in _SCHEMA_TABLES)
            or (action == sqlite3.SQLITE_CREATE_INDEX and first.startswith("sqlite_autoindex_"))
        ):
            return "it does something other than CREATE TABLE"
        if action == sqlite3.SQLITE_CREATE_VTABLE and (second or "").lower() not in self._allowed_modules:
            return f"it creates a virtual table of {second}, which is not allowed"
        if action in _DEFINITIONS:
            self.changes_schema = True
        elif not first.startswith("sqlite_"):
            self.changed.add(first)
        return None


def find_closed_modules(
    connection: sqlite3.Connection, allowed: Iterable[str] = (), schemas: Sequence[str] = ("main",)
) -> set[str]:
    """Return the names of virtual tables that no statement may read, because their modules are neither known to be
    harmless nor `allowed`.

    These are the tables in the databases `schemas` that use such a module, and the modules themselves, since some can
    be read like a table. A module is left out if a table of the database has its name.
    """
    allowed_modules = _ALLOWED_MODULES.union(allowed)
    modules = {str(name).lower() for (name,) in connection.execute("PRAGMA module_list")}
    tables = {str(name).lower() for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    closed = {name for name in modules - allowed_modules - tables if not name.startswith("pragma_")}
    virtual = _select_entries(connection, "name, sql", "type = 'table' AND rootpage = 0", schemas)
    return closed | {str(name).lower() for name, sql in virtual if find_module(str(sql)) not in allowed_modules}


def find_module(sql: str) -> str:
    """Return the module of a virtual table in lowercase, given its stored statement; empty if there is none."""
    match = _VIRTUAL_TABLE.match(sql)
    return "" if match is None else match[1].lower()


def find_virtual_tables(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the virtual tables of the database, and of all modules, since some can be read like a
    table. A module is left out if an ordinary table has its name."""
    modules = {str(name).lower() for (name,) in connection.execute("PRAGMA module_list")}
    entries = connection.execute("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'").fetchall()
    tables = {str(name).lower() for name, _ in entries}
    return modules - tables | {str(name).lower() for name, page in entries if not page}


def find_uninterruptible_tables(connection: sqlite3.Connection, schemas: Sequence[str] = ("main",)) -> set[str]:
    """Return the tables in the databases `schemas` that call a function which can't be interrupted, in their own
    definition or in that of an index."""
    definitions = _select_entries(connection, "tbl_name, sql", "type IN ('table', 'index') AND sql <> ''", schemas)
    return {str(name).lower() for name, sql in definitions if _UNINTERRUPTIBLE_CALL.search(str(sql))}


def _select_entries(
    connection: sqlite3.Connection, columns: str, condition: str, schemas: Sequence[str]
) -> Iterator[tuple[str, str]]:
    for schema in schemas:
        query = f"SELECT {columns} FROM {quote(schema)}.sqlite_schema WHERE {condition}"  # noqa: S608 - ours, and quoted
        yield from connection.execute(query)

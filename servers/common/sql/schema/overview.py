"""A first look at a database: its tables and views by name, page by page; and as much of its schema as there is room
for, what is most useful first.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from typing_extensions import TypedDict

from servers.common.sql.errors import SqlError
from servers.common.sql.schema import lines
from servers.common.sql.schema.diagram import Diagram, draw
from servers.common.sql.schema.lines import ByteBudget
from servers.common.sql.schema.records import Entry, ForeignKey, Index, TableColumn
from servers.common.sql.texts import fence, format_name
from shared.text import format_count

_FRAME = 500
"""Bytes of a list besides its tables, and of a summary besides its lists."""
_COLUMNS = 100
"""Columns of one table that are told."""
_TRIES = 3
"""Tables in a row that don't fit, after which only names are told."""
_NAMES_SHARE = 8
"""Of the budget, one part in so many is kept for the names of tables that have none for their columns."""


class ListedTable(TypedDict):
    """A table or view."""

    name: str
    kind: str
    rows_estimated: int | None
    """By the last ANALYZE."""


class TableList(NamedTuple):
    """Tables and views by name."""

    tables: list[ListedTable]
    total: int
    cursor: str | None
    """With which the list goes on; None at its end."""


class TablePage(NamedTuple):
    """Which part of a list is wanted."""

    cursor: str | None
    most: int
    bytes: int
    words: Sequence[str] = ()
    """Those that a table has in what is told of it, in lower case; none for all tables."""

    def wants(self, *texts: str | None) -> bool:
        """Whether what is told of a table, its name, columns and comments, has all the words."""
        told = "\n".join(filter(None, texts)).lower()
        return all(word in told for word in self.words)


def list_page(entries: Sequence[Entry], estimates: Mapping[str, int], page: TablePage) -> TableList:
    """Of the `entries`, in the order of their names, those that the page wants. Raises SqlError `bad_cursor`."""
    after = None if page.cursor is None else _parse_cursor(page.cursor)
    budget = ByteBudget(page.bytes - _FRAME)
    following = [one for one in entries if after is None or one.name > after]
    tables: list[ListedTable] = []
    for one in following[: page.most]:
        table: ListedTable = {"name": one.name, "kind": one.kind, "rows_estimated": estimates.get(one.name)}
        if not budget.takes(_format_line(table)):
            break
        tables.append(table)
    cursor = None
    if tables and len(tables) < len(following):
        # In letters and digits, so that no name stands outside of the marks.
        cursor = urlsafe_b64encode(tables[-1]["name"].encode()).decode().rstrip("=")
    return TableList(tables, len(entries), cursor)


def format_tables(found: TableList) -> str:
    """One table a line."""
    cut = "" if found.cursor is None else f"; cut; go on with cursor {found.cursor}"
    head = f"{len(found.tables)} of {format_count(found.total, 'table or view', 'tables and views')}{cut}"
    return "\n".join((head, fence([_format_line(table) for table in found.tables])))


def _format_line(table: ListedTable) -> str:
    rows = table["rows_estimated"]
    return f"{table['kind']} {format_name(table['name'])}" + ("" if rows is None else f" (about {rows} rows)")


def _parse_cursor(cursor: str) -> str:
    try:
        return urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except ValueError:
        raise SqlError("bad_cursor", "this is not a cursor of list_tables", "Leave it out to begin.") from None


class TableSummary(TypedDict):
    """A table or view with its columns."""

    name: str
    kind: str
    rows_estimated: int | None
    columns: list[str]
    """Each with its type and what else is said of it."""
    more_columns: int
    """How many there are besides."""


class DatabaseSummary(TypedDict):
    """What is in one database."""

    database: str
    writable: bool
    tables: list[TableSummary]
    other_tables: list[str]
    """Names of tables and views that there was no room to describe."""
    foreign_keys: list[str]
    indexes: list[str]
    """But for those of primary keys."""
    left_out: dict[str, int]
    """How many of each there was no room for."""
    problem: str | None
    """Why the database can't be read."""
    diagram: Diagram | None
    """The same for a view that draws it, where that is wanted."""


class Columns(Protocol):
    """The columns of tables, each read once, and the time that there is for it."""

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""

    def read(self, name: str) -> Sequence[TableColumn]:
        """The columns of that table or view, however late it is."""

    def read_in_time(self, name: str) -> Sequence[TableColumn]:
        """The same; none where it is too late, or they can't be read: what is said without them is the same."""


class SchemaFacts(NamedTuple):
    """What there is in a database."""

    entries: Sequence[Entry]
    foreign_keys: Sequence[ForeignKey]
    """Table by table."""
    indexes: Sequence[tuple[str, Index]]
    """Each with the name of its table."""
    estimates: Mapping[str, int]
    """Rows of tables."""
    columns: Columns


def summarize(name: str, writable: bool, facts: SchemaFacts, budget: ByteBudget, *, drawn: bool) -> DatabaseSummary:
    """The summary of the database called `name`, in which the tables that others refer to most come first. Where it
    is to be `drawn`, it has a diagram as well."""
    keys, estimates, columns = facts.foreign_keys, facts.estimates, facts.columns
    degree = Counter(key["to_table"].lower() for key in keys) + Counter(key["table"].lower() for key in keys)
    found = sorted(facts.entries, key=lambda one: (one.kind == "view", -degree[one.name.lower()], one.name))
    budget.left -= _FRAME
    for_names = budget.share(_NAMES_SHARE)
    tables, others = _describe_tables(found, budget, estimates, columns)
    budget.left += for_names.left
    names, unnamed = budget.fitting(others, format_name)
    shown_keys, more_keys = budget.fitting(map(lines.format_foreign_key, keys), str)
    shown_tables = {one.name for one in found}
    known = (
        lines.format_brief_index(table, index)
        for table, index in facts.indexes
        if table in shown_tables and index["origin"] != "PRIMARY KEY"
    )
    shown_indexes, more_indexes = budget.fitting(known, str)
    left_out = {"tables": unnamed, "foreign_keys": more_keys, "indexes": more_indexes}
    return {
        "database": name,
        "writable": writable,
        "tables": tables,
        "other_tables": names,
        "foreign_keys": shown_keys,
        "indexes": shown_indexes,
        "left_out": {what: count for what, count in left_out.items() if count},
        "problem": None,
        "diagram": draw(name, found, keys, estimates, columns.read_in_time) if drawn else None,
    }


def describe_unreadable(name: str, writable: bool, problem: str) -> DatabaseSummary:
    """The summary of a database that can't be read."""
    return {
        "database": name,
        "writable": writable,
        "tables": [],
        "other_tables": [],
        "foreign_keys": [],
        "indexes": [],
        "left_out": {},
        "problem": problem,
        "diagram": None,
    }


def _format_table(table: TableSummary) -> str:
    """A table with its columns."""
    rows = "" if table["rows_estimated"] is None else f" about {table['rows_estimated']} rows"
    more = f", and {table['more_columns']} more" if table["more_columns"] else ""
    columns = f": {', '.join(table['columns'])}" if table["columns"] else ""
    return f"{table['kind']} {format_name(table['name'])}{rows}{columns}{more}"


def _describe_tables(
    found: Sequence[Entry], budget: ByteBudget, estimates: Mapping[str, int], columns: Columns
) -> tuple[list[TableSummary], list[str]]:
    """Those that there is room and time for, and the names of the others."""
    tables: list[TableSummary] = []
    others: list[str] = []
    failed = 0
    for one in found:
        if failed == _TRIES or columns.is_late:
            others.append(one.name)
            continue
        known = columns.read(one.name)
        table: TableSummary = {
            "name": one.name,
            "kind": one.kind,
            "rows_estimated": estimates.get(one.name),
            "columns": [lines.format_column(column) for column in known[:_COLUMNS]],
            "more_columns": max(len(known) - _COLUMNS, 0),
        }
        if budget.takes(_format_table(table)):
            tables.append(table)
            failed = 0
        else:
            others.append(one.name)
            failed += 1
    return tables, others


def format_overview(found: Sequence[DatabaseSummary]) -> str:
    """One database after the other."""
    return "\n\n".join(_format_database(one) for one in found)


def _format_database(one: DatabaseSummary) -> str:
    facts = [f"database {one['database']}", "may be changed" if one["writable"] else "may only be read"]
    if one["problem"] is not None:
        return "\n".join(("; ".join([*facts, "can't be read"]), fence([one["problem"]])))
    if one["left_out"]:
        facts.append(f"left out: {lines.format_left_out(one['left_out'])}")
    parts = [
        *map(_format_table, one["tables"]),
        *lines.format_section("tables and views without their columns", list(map(format_name, one["other_tables"]))),
        *lines.format_section("foreign keys", one["foreign_keys"]),
        *lines.format_section("indexes", one["indexes"]),
    ]
    return "\n".join(("; ".join(facts), fence(parts)))

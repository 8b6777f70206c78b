"""An overview of a database: its tables and views by name, page by page; and as much of its schema as fits, most
useful parts first.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NotRequired, Protocol

from typing_extensions import TypedDict

from servers.common.sql.errors import SqlError
from servers.common.sql.schema import lines
from servers.common.sql.schema.diagram import Diagram, make_diagram
from servers.common.sql.schema.lines import ByteBudget
from servers.common.sql.schema.records import Entry, ForeignKey, Index, TableColumn
from servers.common.sql.texts import fence, format_name, format_names
from shared.text import format_count

_FRAME_BYTES = 500
"""Size in bytes of a list without its tables, and of a summary without its lists."""
_MAX_COLUMNS = 100
"""Maximum number of columns listed for one table."""
_MAX_MISFITS = 3
"""Number of consecutive tables that don't fit after which only names are listed."""
_NAMES_SHARE = 1 / 8
"""The share of the budget that is reserved for the names of tables whose columns don't fit."""


class ListedTable(TypedDict):
    """A table or view."""

    name: str
    kind: str
    rows_estimated: int | None
    """Number of rows, estimated by the last ANALYZE."""


class TableList(NamedTuple):
    """Tables and views by name."""

    tables: list[ListedTable]
    total: int
    cursor: str | None
    """The cursor with which the list continues; None at its end."""


class TablePage(NamedTuple):
    """The requested part of a list."""

    cursor: str | None
    limit: int
    bytes: int
    words: Sequence[str] = ()
    """Words in lowercase that a table's name, columns or comments must contain; empty for all tables."""

    def matches(self, *texts: str | None) -> bool:
        """Return True if the `texts` of a table, its name, columns and comments, contain all the words."""
        searched = "\n".join(filter(None, texts)).lower()
        return all(word in searched for word in self.words)


def list_page(entries: Sequence[Entry], estimates: Mapping[str, int], page: TablePage) -> TableList:
    """Return the part of the `entries` that the page requests, ordered by name. Raises SqlError with code
    `bad_cursor`."""
    after = None
    if page.cursor is not None:
        try:
            after = urlsafe_b64decode(page.cursor + "=" * (-len(page.cursor) % 4)).decode()
        except ValueError:
            raise SqlError(
                "bad_cursor", "this cursor is not from list_tables", "Omit the cursor to start from the beginning."
            ) from None
    budget = ByteBudget(page.bytes - _FRAME_BYTES)
    following = [entry for entry in entries if after is None or entry.name > after]
    tables: list[ListedTable] = []
    for entry in following[: page.limit]:
        table: ListedTable = {"name": entry.name, "kind": entry.kind, "rows_estimated": estimates.get(entry.name)}
        if not budget.take(_format_line(table)):
            break
        tables.append(table)
    cursor = None
    if tables and len(tables) < len(following):
        # In letters and digits, so that no name appears outside the marks.
        cursor = urlsafe_b64encode(tables[-1]["name"].encode()).decode().rstrip("=")
    return TableList(tables, len(entries), cursor)


def format_tables(listed: TableList) -> str:
    """Format the tables, one per line."""
    cut = "" if listed.cursor is None else f"; truncated; continue with cursor {listed.cursor}"
    head = f"{len(listed.tables)} of {format_count(listed.total, 'table or view', 'tables and views')}{cut}"
    return "\n".join((head, fence([_format_line(table) for table in listed.tables])))


def _format_line(table: ListedTable) -> str:
    rows = table["rows_estimated"]
    return f"{table['kind']} {format_name(table['name'])}" + ("" if rows is None else f" (about {rows} rows)")


class TableSummary(TypedDict):
    """A table or view with its columns."""

    name: str
    kind: str
    rows_estimated: int | None
    columns: list[str]
    """The columns, each with its type and other properties."""
    more_columns: int
    """Number of columns that are not listed."""


class DatabaseSummary(TypedDict):
    """The contents of one database."""

    database: str
    writable: bool
    tables: list[TableSummary]
    other_tables: list[str]
    """Names of tables and views whose descriptions did not fit."""
    foreign_keys: list[str]
    indexes: list[str]
    """The indexes, except those of primary keys."""
    left_out: dict[str, int]
    """Counts of omitted parts."""
    problem: str | None
    """The reason that the database can't be read."""
    diagram: Diagram | None
    """The diagram of the schema, if requested."""
    attached: NotRequired[Sequence[str]]
    """Names of other databases whose tables its statements can read."""


class Columns(Protocol):
    """Reads the columns of tables, each once, within a time limit."""

    @property
    def is_late(self) -> bool:
        """True if the time limit has passed."""

    def read(self, name: str) -> Sequence[TableColumn]:
        """Return the columns of that table or view, even after the time limit."""

    def read_in_time(self, name: str) -> Sequence[TableColumn]:
        """Return the columns, or none if it is too late or they can't be read. The rest of the result does not depend
        on them."""


class SchemaFacts(NamedTuple):
    """The schema of a database, as an engine reads it."""

    entries: Sequence[Entry]
    foreign_keys: Sequence[ForeignKey]
    """The foreign keys, ordered by table."""
    indexes: Sequence[tuple[str, Index]]
    """The indexes, each with the name of its table."""
    estimates: Mapping[str, int]
    """Estimated numbers of rows in tables."""
    columns: Columns


def summarize(name: str, writable: bool, facts: SchemaFacts, budget: ByteBudget, *, drawn: bool) -> DatabaseSummary:
    """Summarize the database called `name`. The tables that most others refer to come first.

    With `drawn`, the summary has a diagram as well.
    """
    keys, estimates, columns = facts.foreign_keys, facts.estimates, facts.columns
    degree = Counter(key["to_table"].lower() for key in keys) + Counter(key["table"].lower() for key in keys)
    entries = sorted(facts.entries, key=lambda entry: (entry.kind == "view", -degree[entry.name.lower()], entry.name))
    budget.left -= _FRAME_BYTES
    for_names = budget.split_off(_NAMES_SHARE)
    tables, others = _describe_tables(entries, budget, estimates, columns)
    budget.left += for_names.left
    names, unnamed = budget.select_fitting(others, format_name)
    shown_keys, more_keys = budget.select_fitting(map(lines.format_foreign_key, keys), str)
    shown_tables = {entry.name for entry in entries}
    index_lines = (
        lines.format_brief_index(table, index)
        for table, index in facts.indexes
        if table in shown_tables and index["origin"] != "PRIMARY KEY"
    )
    shown_indexes, more_indexes = budget.select_fitting(index_lines, str)
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
        "diagram": make_diagram(name, entries, keys, estimates, columns.read_in_time) if drawn else None,
    }


def describe_unreadable(name: str, writable: bool, problem: str) -> DatabaseSummary:
    """Return the summary of a database that can't be read."""
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
    rows = "" if table["rows_estimated"] is None else f" about {table['rows_estimated']} rows"
    more = f", and {table['more_columns']} more" if table["more_columns"] else ""
    columns = f": {', '.join(table['columns'])}" if table["columns"] else ""
    return f"{table['kind']} {format_name(table['name'])}{rows}{columns}{more}"


def _describe_tables(
    entries: Sequence[Entry], budget: ByteBudget, estimates: Mapping[str, int], columns: Columns
) -> tuple[list[TableSummary], list[str]]:
    """Describe as many tables as space and time allow, and return the names of the others."""
    tables: list[TableSummary] = []
    others: list[str] = []
    failed = 0
    for entry in entries:
        if failed == _MAX_MISFITS or columns.is_late:
            others.append(entry.name)
            continue
        table_columns = columns.read(entry.name)
        table: TableSummary = {
            "name": entry.name,
            "kind": entry.kind,
            "rows_estimated": estimates.get(entry.name),
            "columns": [lines.format_column(column) for column in table_columns[:_MAX_COLUMNS]],
            "more_columns": max(len(table_columns) - _MAX_COLUMNS, 0),
        }
        if budget.take(_format_table(table)):
            tables.append(table)
            failed = 0
        else:
            others.append(entry.name)
            failed += 1
    return tables, others


def format_overview(summaries: Sequence[DatabaseSummary]) -> str:
    """Format one database after another."""
    return "\n\n".join(_format_database(summary) for summary in summaries)


def _format_database(summary: DatabaseSummary) -> str:
    facts = [f"database {summary['database']}", "writable" if summary["writable"] else "read-only"]
    if summary.get("attached"):
        facts.append(f"statements read {format_names(summary['attached'])} too, as NAME.TABLE")
    if summary["problem"] is not None:
        return "\n".join(("; ".join([*facts, "can't be read"]), fence([summary["problem"]])))
    if summary["left_out"]:
        facts.append(f"left out: {lines.format_left_out(summary['left_out'])}")
    parts = [
        *map(_format_table, summary["tables"]),
        *lines.format_section(
            "tables and views without their columns", list(map(format_name, summary["other_tables"]))
        ),
        *lines.format_section("foreign keys", summary["foreign_keys"]),
        *lines.format_section("indexes", summary["indexes"]),
    ]
    return "\n".join(("; ".join(facts), fence(parts)))

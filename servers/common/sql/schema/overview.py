"""Returns overviews of a database: a list of its tables and views in pages, and a summary with as much of its schema
as fits, the most useful parts first.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NotRequired, Protocol

from typing_extensions import TypedDict

from shared.text import format_count

from ..errors import SqlError
from ..texts import fence, format_name, format_names
from . import lines
from .diagram import Diagram, make_diagram
from .lines import ByteBudget
from .records import Entry, ForeignKey, Index, TableColumn

_FRAME_BYTES = 500
"""Maximum size of a list without its tables, and of a summary without its lists, in bytes."""
_MAX_COLUMNS = 100
"""Maximum number of columns listed for one table."""
_MAX_MISFITS = 3
"""After this many consecutive tables that don't fit, only the names of tables are listed."""
_NAMES_SHARE = 1 / 8
"""The share of the bytes that is reserved for the names of tables whose columns don't fit."""


class ListedTable(TypedDict):
    """A table or view."""

    name: str
    kind: str
    rows_estimated: int | None
    """Number of rows, estimated by the last ANALYZE."""


class TableList(NamedTuple):
    """A page of the list of tables and views."""

    tables: list[ListedTable]
    total: int
    """Number of tables and views on all pages."""
    cursor: str | None
    """The cursor with which the list continues; None at its end."""


class TablePage(NamedTuple):
    """A request for a page of the list of tables and views."""

    cursor: str | None
    limit: int
    """Maximum number of tables."""
    bytes: int
    """Maximum size of the page in bytes."""
    words: Sequence[str] = ()
    """Words in lowercase that a table's name, columns or comments must contain; empty for all tables."""

    def matches(self, *texts: str | None) -> bool:
        """Return True if the `texts` contain all words. They are the name, the columns and the comments of a
        table."""
        searched = "\n".join(filter(None, texts)).lower()
        return all(word in searched for word in self.words)


def list_page(entries: Sequence[Entry], estimates: Mapping[str, int], page: TablePage) -> TableList:
    """Return the requested page of the `entries`, which are ordered by name. Raises SqlError `bad_cursor`."""
    after = None
    if page.cursor is not None:
        try:
            after = urlsafe_b64decode(page.cursor + "=" * (-len(page.cursor) % 4)).decode()
        except ValueError:
            raise SqlError(
                "bad_cursor", "this cursor is not from list_tables", "Omit the cursor to start from the beginning."
            ) from None
    budget = ByteBudget(page.bytes - _FRAME_BYTES)
    remaining = [entry for entry in entries if after is None or entry.name > after]
    tables: list[ListedTable] = []
    for entry in remaining[: page.limit]:
        table: ListedTable = {"name": entry.name, "kind": entry.kind, "rows_estimated": estimates.get(entry.name)}
        if not budget.take(_format_line(table)):
            break
        tables.append(table)
    cursor = None
    if tables and len(tables) < len(remaining):
        # Encode the name, because the cursor is outside the marks, where no name from the database may appear.
        cursor = urlsafe_b64encode(tables[-1]["name"].encode()).decode().rstrip("=")
    return TableList(tables, len(entries), cursor)


def format_tables(listed: TableList) -> str:
    """Return a page of the list as text, with one table per line."""
    continuation = "" if listed.cursor is None else f"; truncated; continue with cursor {listed.cursor}"
    heading = (
        f"{len(listed.tables)} of {format_count(listed.total, 'table or view', 'tables and views')}{continuation}"
    )
    return "\n".join((heading, fence([_format_line(table) for table in listed.tables])))


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
    """The reason why the database can't be read."""
    diagram: Diagram | None
    """The diagram of the schema, if requested."""
    attached: NotRequired[Sequence[str]]
    """Names of other databases whose tables can be read by statements on this one."""


class Columns(Protocol):
    """Reads the columns of tables, each once, within a time limit."""

    @property
    def is_late(self) -> bool:
        """True if the time limit has passed."""

    def read(self, name: str) -> Sequence[TableColumn]:
        """Return the columns of the table or view with this name, even after the time limit."""

    def read_in_time(self, name: str) -> Sequence[TableColumn]:
        """Return the same as `read`, but an empty list if the time limit has passed or the columns can't be read.
        This is for the diagram, which does not need all columns."""


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


def summarize(
    name: str, writable: bool, facts: SchemaFacts, budget: ByteBudget, *, with_diagram: bool
) -> DatabaseSummary:
    """Summarize the database called `name`, and add a diagram if `with_diagram`. Tables with the most foreign keys
    from or to them come first, views last."""
    keys, estimates, columns = facts.foreign_keys, facts.estimates, facts.columns
    key_counts = Counter(key["to_table"].lower() for key in keys) + Counter(key["table"].lower() for key in keys)
    entries = sorted(
        facts.entries, key=lambda entry: (entry.kind == "view", -key_counts[entry.name.lower()], entry.name)
    )
    budget.left -= _FRAME_BYTES
    names_budget = budget.split_off(_NAMES_SHARE)
    tables, others = _describe_tables(entries, budget, estimates, columns)
    budget.left += names_budget.left
    names, unnamed_count = budget.select_fitting(others, format_name)
    shown_keys, more_keys = budget.select_fitting(map(lines.format_foreign_key, keys), str)
    shown_tables = {entry.name for entry in entries}
    index_lines = (
        lines.format_brief_index(table, index)
        for table, index in facts.indexes
        if table in shown_tables and index["origin"] != "PRIMARY KEY"
    )
    shown_indexes, more_indexes = budget.select_fitting(index_lines, str)
    left_out = {"tables": unnamed_count, "foreign_keys": more_keys, "indexes": more_indexes}
    return {
        "database": name,
        "writable": writable,
        "tables": tables,
        "other_tables": names,
        "foreign_keys": shown_keys,
        "indexes": shown_indexes,
        "left_out": {part: count for part, count in left_out.items() if count},
        "problem": None,
        "diagram": make_diagram(name, entries, keys, estimates, columns.read_in_time) if with_diagram else None,
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
    """Return descriptions of as many tables as space and time allow, and the names of the others."""
    tables: list[TableSummary] = []
    others: list[str] = []
    misfits = 0
    for entry in entries:
        if misfits == _MAX_MISFITS or columns.is_late:
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
            misfits = 0
        else:
            others.append(entry.name)
            misfits += 1
    return tables, others


def format_overview(summaries: Sequence[DatabaseSummary]) -> str:
    """Return the summaries of databases as text."""
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

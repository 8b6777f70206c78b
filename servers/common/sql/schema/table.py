"""Describes one table or view in full, as far as the description fits into one result."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from shared.text import format_count

from ..texts import fence, format_name, format_row, shorten
from . import lines
from .lines import ByteBudget
from .records import Entry, ForeignKey, Index, Statistics, TableColumn

FRAME_BYTES = 800
"""Maximum size of a description without its lists, in bytes."""
MAX_CELL_BYTES = 200
"""Maximum size in bytes of a value in a sample."""
SAMPLE_SHARE = 0.25
"""The share of a call's timeout that a sample may take."""
_MAX_SQL_LENGTH = 4_000
"""Maximum number of characters of a CREATE statement that are shown."""


class TableRequest(NamedTuple):
    """A request to describe a table."""

    table: str
    sample: int = 0
    """Number of rows to show."""
    statistics: bool = False
    """True to include statistics of each column."""


class Sample(TypedDict):
    """The first rows of a table."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


class TableDescription(TypedDict):
    """The description of a table or view."""

    name: str
    kind: str
    facts: Sequence[str]
    """Further properties of the table, such as STRICT, as the database calls them."""
    rows_estimated: int | None
    """Number of rows, estimated by the last ANALYZE."""
    columns: list[TableColumn]
    foreign_keys: list[ForeignKey]
    referenced_by: list[ForeignKey]
    indexes: list[Index]
    triggers: list[str]
    """The SQL of each trigger."""
    sql: str
    """The CREATE statement, which contains checks and expressions; empty if the database does not keep it."""
    sections: dict[str, list[str]]
    """Further sections, by title."""
    problem: str | None
    """The reason why the columns can't be read, for example that the view reads a dropped table."""
    left_out: dict[str, int]
    """Counts of columns and other parts that did not fit, and of rows of the sample and columns of the statistics
    that could not be read in time."""
    sample: Sample | None
    statistics: Statistics | None


class TableFacts(NamedTuple):
    """The schema of a table or view, as an engine reads it."""

    entry: Entry
    properties: Sequence[str]
    """Properties of the table, such as STRICT, as the database calls them."""
    rows_estimated: int | None
    columns: Sequence[TableColumn]
    foreign_keys: Sequence[ForeignKey]
    referenced_by: Sequence[ForeignKey]
    indexes: Sequence[Index]
    triggers: Sequence[str]
    sections: Mapping[str, Sequence[str]]
    problem: str | None


def describe_facts(facts: TableFacts, budget: ByteBudget) -> TableDescription:
    """Return as much of the description of a table as fits, without sample and statistics. `left_out` counts the
    parts that don't fit."""
    left_out: dict[str, int] = {}
    shown_columns, left_out["columns"] = budget.select_fitting(facts.columns, lines.format_column)
    shown_keys, left_out["foreign_keys"] = budget.select_fitting(facts.foreign_keys, lines.format_foreign_key)
    shown_indexes, left_out["indexes"] = budget.select_fitting(facts.indexes, lines.format_index)
    shown_triggers, left_out["triggers"] = budget.select_fitting(facts.triggers, str)
    shown_references, left_out["referenced_by"] = budget.select_fitting(facts.referenced_by, lines.format_foreign_key)
    sections: dict[str, list[str]] = {}
    for title, section in facts.sections.items():
        sections[title], left_out[title] = budget.select_fitting(section, str)
    sql = shorten(facts.entry.sql, _MAX_SQL_LENGTH)
    if not budget.take(sql):
        sql = shorten(facts.entry.sql, 0)
    return {
        "name": facts.entry.name,
        "kind": facts.entry.kind,
        "facts": facts.properties,
        "rows_estimated": facts.rows_estimated,
        "columns": shown_columns,
        "foreign_keys": shown_keys,
        "referenced_by": shown_references,
        "indexes": shown_indexes,
        "triggers": shown_triggers,
        "sections": sections,
        "sql": sql,
        "problem": facts.problem,
        "left_out": {part: count for part, count in left_out.items() if count},
        "sample": None,
        "statistics": None,
    }


def fit_statistics(statistics: Statistics, budget: ByteBudget) -> Statistics:
    """Return the statistics of as many columns as fit."""
    columns, left_out = budget.select_fitting(statistics["columns"], lines.format_statistics)
    return {**statistics, "columns": columns, "partial": statistics["partial"] or left_out > 0}


def format_table(table: TableDescription) -> str:
    """Return the description of a table as text."""
    facts: list[str] = [table["kind"], *table["facts"]]
    if table["rows_estimated"] is not None:
        facts.append(f"about {table['rows_estimated']} rows as of the last ANALYZE")
    if table["left_out"]:
        facts.append(f"left out: {lines.format_left_out(table['left_out'])}")
    statistics = table["statistics"]
    if statistics is not None:
        examined = format_count(statistics["rows_examined"], "row")
        partial = ", partial: more rows, or columns that are missing" if statistics["partial"] else ""
        facts.append(f"statistics of {examined}{partial}")
    return "\n".join(("; ".join(facts), fence([format_name(table["name"]), *_list_parts(table)])))


def _list_parts(table: TableDescription) -> Iterator[str]:
    if table["problem"] is not None:
        yield f"problem: {table['problem']}"
    yield from lines.format_section("columns", [lines.format_column(column) for column in table["columns"]])
    yield from lines.format_section("foreign keys", [lines.format_foreign_key(key) for key in table["foreign_keys"]])
    yield from lines.format_section(
        "referenced by", [lines.format_foreign_key(key) for key in table["referenced_by"]]
    )
    yield from lines.format_section("indexes", [lines.format_index(index) for index in table["indexes"]])
    yield from lines.format_section("triggers", table["triggers"])
    for title, section in table["sections"].items():
        yield from lines.format_section(title, section)
    yield from lines.format_section("sql", [table["sql"]] if table["sql"] else [])
    if table["sample"] is not None:
        sample = table["sample"]
        yield from lines.format_section(
            "sample", [f"columns {format_row(sample['columns'])}", *map(format_row, sample["rows"])]
        )
    if table["statistics"] is not None:
        yield from lines.format_section(
            "statistics", [lines.format_statistics(column) for column in table["statistics"]["columns"]]
        )

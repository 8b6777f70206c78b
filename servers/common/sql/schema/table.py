"""All there is to know of one table or view, as far as one answer has room."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from servers.common.sql.schema import lines
from servers.common.sql.schema.lines import ByteBudget
from servers.common.sql.schema.records import Entry, ForeignKey, Index, Statistics, TableColumn
from servers.common.sql.texts import fence, format_name, format_row, shorten

FRAME = 800
"""Bytes of a description besides its lists."""
SAMPLE_CELL = 200
"""Bytes of a value in a sample."""
SAMPLE_SHARE = 0.25
"""Of the seconds of the call, those for a sample."""
_SQL = 4_000
"""Characters of a CREATE statement that are told."""


class TableRequest(NamedTuple):
    """Of which table what is wanted besides its schema."""

    table: str
    sample: int = 0
    statistics: bool = False


class Sample(TypedDict):
    """The first rows of a table."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


class TableDescription(TypedDict):
    """A table or view."""

    name: str
    kind: str
    facts: Sequence[str]
    """What else the database says of it as a whole, as STRICT, in its own words."""
    rows_estimated: int | None
    """By the last ANALYZE."""
    columns: list[TableColumn]
    foreign_keys: list[ForeignKey]
    referenced_by: list[ForeignKey]
    indexes: list[Index]
    triggers: list[str]
    """The SQL of each."""
    sql: str
    """The CREATE statement, with the checks and expressions in it; empty where the database keeps none."""
    sections: dict[str, list[str]]
    """What else there is, by its title."""
    problem: str | None
    """Why the columns can't be told, as of a view of a table that is gone."""
    left_out: dict[str, int]
    """How many columns and so on there was no room for, and rows of a sample also where there was no time."""
    sample: Sample | None
    statistics: Statistics | None


class TableFacts(NamedTuple):
    """All that the schema has of a table or view."""

    entry: Entry
    words: Sequence[str]
    """What the database says of it as a whole, as STRICT."""
    rows_estimated: int | None
    columns: Sequence[TableColumn]
    foreign_keys: Sequence[ForeignKey]
    referenced_by: Sequence[ForeignKey]
    indexes: Sequence[Index]
    triggers: Sequence[str]
    sections: Mapping[str, Sequence[str]]
    problem: str | None


def describe(facts: TableFacts, budget: ByteBudget) -> TableDescription:
    """The table without a sample and statistics, as far as there is room; what has none is counted."""
    left_out: dict[str, int] = {}
    shown_columns, left_out["columns"] = budget.fitting(facts.columns, lines.format_column)
    shown_keys, left_out["foreign_keys"] = budget.fitting(facts.foreign_keys, lines.format_foreign_key)
    shown_indexes, left_out["indexes"] = budget.fitting(facts.indexes, lines.format_index)
    shown_triggers, left_out["triggers"] = budget.fitting(facts.triggers, str)
    shown_references, left_out["referenced_by"] = budget.fitting(facts.referenced_by, lines.format_foreign_key)
    sections: dict[str, list[str]] = {}
    for title, section in facts.sections.items():
        sections[title], left_out[title] = budget.fitting(section, str)
    sql = shorten(facts.entry.sql, _SQL)
    if not budget.takes(sql):
        sql = shorten(facts.entry.sql, 0)
    return {
        "name": facts.entry.name,
        "kind": facts.entry.kind,
        "facts": facts.words,
        "rows_estimated": facts.rows_estimated,
        "columns": shown_columns,
        "foreign_keys": shown_keys,
        "referenced_by": shown_references,
        "indexes": shown_indexes,
        "triggers": shown_triggers,
        "sections": sections,
        "sql": sql,
        "problem": facts.problem,
        "left_out": {what: count for what, count in left_out.items() if count},
        "sample": None,
        "statistics": None,
    }


def fit_statistics(found: Statistics, budget: ByteBudget) -> Statistics:
    """The statistics of as many columns as there is room for."""
    columns, left_out = budget.fitting(found["columns"], lines.format_statistics)
    return {**found, "columns": columns, "partial": found["partial"] or left_out > 0}


def format_table(table: TableDescription) -> str:
    """All about a table."""
    facts: list[str] = [table["kind"], *table["facts"]]
    if table["rows_estimated"] is not None:
        facts.append(f"about {table['rows_estimated']} rows by the last ANALYZE")
    if table["left_out"]:
        facts.append(f"left out: {lines.format_left_out(table['left_out'])}")
    statistics = table["statistics"]
    if statistics is not None:
        partial = ", partial: more rows, or columns that are missing" if statistics["partial"] else ""
        facts.append(f"statistics of {statistics['rows_examined']} rows{partial}")
    return "\n".join(("; ".join(facts), fence([format_name(table["name"]), *_list_parts(table)])))


def _list_parts(table: TableDescription) -> Iterator[str]:
    if table["problem"] is not None:
        yield f"problem: {table['problem']}"
    yield from lines.format_section("columns", [lines.format_column(one) for one in table["columns"]])
    yield from lines.format_section("foreign keys", [lines.format_foreign_key(one) for one in table["foreign_keys"]])
    yield from lines.format_section(
        "referenced by", [lines.format_foreign_key(one) for one in table["referenced_by"]]
    )
    yield from lines.format_section("indexes", [lines.format_index(one) for one in table["indexes"]])
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
            "statistics", [lines.format_statistics(one) for one in table["statistics"]["columns"]]
        )

"""All there is to know of one table or view."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from servers.sqlite.engine.limits import StatementDeadline
from servers.sqlite.engine.sql import select
from servers.sqlite.errors import SqliteError
from servers.sqlite.query.pages import AnswerLimits, fill_page
from servers.sqlite.schema import lines
from servers.sqlite.schema.columns import (
    ForeignKey,
    Index,
    Statistics,
    TableColumn,
    compute_statistics,
    read_columns,
    read_foreign_keys,
    read_indexes,
    read_row_estimates,
    read_triggers,
)
from servers.sqlite.schema.entries import Entry, Kind, get_entry, hold_snapshot
from servers.sqlite.schema.lines import ByteBudget
from servers.sqlite.texts import fence, format_name, format_row, shorten

_SQL = 4_000
"""Characters of a CREATE statement that are told."""
_FRAME = 800
"""Bytes of a description besides its lists."""
_SAMPLE_CELL = 200
"""Bytes of a value in a sample."""
_SHARE = 0.25
"""Of the seconds of the call, those for a sample."""


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
    kind: Kind
    strict: bool
    without_rowid: bool
    rows_estimated: int | None
    """By the last ANALYZE."""
    columns: list[TableColumn]
    foreign_keys: list[ForeignKey]
    referenced_by: list[ForeignKey]
    indexes: list[Index]
    triggers: list[str]
    """The SQL of each."""
    sql: str
    """The CREATE statement, with the checks and expressions in it."""
    problem: str | None
    """Why the columns can't be told, as of a view of a table that is gone."""
    left_out: dict[str, int]
    """How many columns and so on there was no room for, and rows of a sample also where there was no time."""
    sample: Sample | None
    statistics: Statistics | None


def describe(
    wanted: TableRequest, limits: AnswerLimits, connection: sqlite3.Connection, deadline: StatementDeadline
) -> TableDescription:
    """The table or view, within the limits. Raises SqliteError, `not_found` with the nearest names."""
    with hold_snapshot(connection, deadline):
        entry = get_entry(connection, wanted.table)
        columns, problem = read_columns(connection, entry.name)
        budget = ByteBudget(limits.bytes - _FRAME)
        extras = budget.share(2) if wanted.sample or wanted.statistics else ByteBudget(0)
        made = _find_facts(entry, columns, budget, connection)
        made["problem"] = problem
        if wanted.sample and problem is None:
            part = extras.share(2) if wanted.statistics else extras
            # Only the text of rows is told, of which the limits count two forms.
            for_sample = AnswerLimits(wanted.sample, 2 * part.left, min(limits.cell_bytes, _SAMPLE_CELL))
            with deadline.at_most(deadline.seconds * _SHARE):
                made["sample"] = _take_sample(entry, for_sample, connection)
            if made["sample"] is None:
                made["left_out"]["sample"] = wanted.sample
        if wanted.statistics and problem is None:
            made["statistics"] = _fit(compute_statistics(entry, made["columns"], connection, deadline), extras)
    return made


def _take_sample(entry: Entry, limits: AnswerLimits, connection: sqlite3.Connection) -> Sample | None:
    """The first rows; None where not even one has room."""
    with closing(connection.execute(select("*", entry.name, f"LIMIT {limits.rows}"))) as cursor:
        names = [column[0] for column in cursor.description]
        try:
            found, _ = fill_page(names, cursor, limits)
        except SqliteError as error:
            if error.code != "too_large":
                raise
            return None
    return {"columns": names, "rows": found.rows}


def _find_facts(
    entry: Entry, columns: list[TableColumn], budget: ByteBudget, connection: sqlite3.Connection
) -> TableDescription:
    keys = read_foreign_keys(connection)
    name = entry.name.lower()
    left_out: dict[str, int] = {}
    shown_columns, left_out["columns"] = budget.fitting(columns, lines.format_column)
    outward = (key for key in keys if key["table"] == entry.name)
    shown_keys, left_out["foreign_keys"] = budget.fitting(outward, lines.format_foreign_key)
    known = (index for _, index in read_indexes(connection, entry.name))
    shown_indexes, left_out["indexes"] = budget.fitting(known, lines.format_index)
    shown_triggers, left_out["triggers"] = budget.fitting(read_triggers(connection, entry.name), str)
    inward = (key for key in keys if key["to_table"].lower() == name)
    shown_references, left_out["referenced_by"] = budget.fitting(inward, lines.format_foreign_key)
    sql = shorten(entry.sql, _SQL)
    if not budget.takes(sql):
        sql = shorten(entry.sql, 0)
    return {
        "name": entry.name,
        "kind": entry.kind,
        "strict": "STRICT" in entry.options,
        "without_rowid": "ROWID" in entry.options,
        "rows_estimated": read_row_estimates(connection).get(entry.name),
        "columns": shown_columns,
        "foreign_keys": shown_keys,
        "referenced_by": shown_references,
        "indexes": shown_indexes,
        "triggers": shown_triggers,
        "sql": sql,
        "problem": None,
        "left_out": {what: count for what, count in left_out.items() if count},
        "sample": None,
        "statistics": None,
    }


def _fit(found: Statistics, budget: ByteBudget) -> Statistics:
    columns, left_out = budget.fitting(found["columns"], lines.format_statistics)
    return {**found, "columns": columns, "partial": found["partial"] or left_out > 0}


def format_table(table: TableDescription) -> str:
    """All about a table."""
    facts: list[str] = [table["kind"]]
    if table["strict"]:
        facts.append("STRICT")
    if table["without_rowid"]:
        facts.append("WITHOUT ROWID")
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
    yield from lines.format_section("sql", [table["sql"]])
    if table["sample"] is not None:
        sample = table["sample"]
        yield from lines.format_section(
            "sample", [f"columns {format_row(sample['columns'])}", *map(format_row, sample["rows"])]
        )
    if table["statistics"] is not None:
        yield from lines.format_section(
            "statistics", [lines.format_statistics(one) for one in table["statistics"]["columns"]]
        )

"""All there is to know of one table or view."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from servers.sqlite.engine.limits import Stop
from servers.sqlite.engine.sql import select
from servers.sqlite.errors import SqliteError
from servers.sqlite.query.pages import Room, page
from servers.sqlite.schema import lines
from servers.sqlite.schema.entries import Entry, Kind, find, steady
from servers.sqlite.schema.lines import Space
from servers.sqlite.schema.parts import (
    ForeignKey,
    Index,
    TableColumn,
    columns_of,
    foreign_keys,
    indexes,
    row_estimates,
    triggers_of,
)
from servers.sqlite.schema.statistics import Statistics, statistics_of
from servers.sqlite.texts import fenced, line, short, shown

__all__ = ["Sample", "TableDescription", "Wanted", "describe", "table_text"]

_SQL = 4_000
"""Characters of a CREATE statement that are told."""
_FRAME = 800
"""Bytes of a description besides its lists."""
_SAMPLE_CELL = 200
"""Bytes of a value in a sample."""
_SHARE = 0.25
"""Of the seconds of the call, those for a sample."""


class Wanted(NamedTuple):
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


def describe(wanted: Wanted, room: Room, connection: sqlite3.Connection, stop: Stop) -> TableDescription:
    """The table or view, within the room. Raises SqliteError, `not_found` with the nearest names."""
    with steady(connection, stop):
        entry = find(connection, wanted.table)
        columns, problem = columns_of(connection, entry.name)
        space = Space(room.bytes - _FRAME)
        extras = space.share(2) if wanted.sample or wanted.statistics else Space(0)
        made = _facts(entry, columns, space, connection)
        made["problem"] = problem
        if wanted.sample and problem is None:
            part = extras.share(2) if wanted.statistics else extras
            # Only the text of rows is told, of which a room counts two forms.
            limits = Room(wanted.sample, 2 * part.left, min(room.cell_bytes, _SAMPLE_CELL))
            with stop.at_most(stop.seconds * _SHARE):
                made["sample"] = _sampled(entry, limits, connection)
            if made["sample"] is None:
                made["left_out"]["sample"] = wanted.sample
        if wanted.statistics and problem is None:
            made["statistics"] = _fitted(statistics_of(entry, made["columns"], connection, stop), extras)
    return made


def _sampled(entry: Entry, room: Room, connection: sqlite3.Connection) -> Sample | None:
    """The first rows; None where not even one has room."""
    with closing(connection.execute(select("*", entry.name, f"LIMIT {room.rows}"))) as cursor:
        names = [column[0] for column in cursor.description]
        try:
            found, _ = page(names, cursor, room)
        except SqliteError as error:
            if error.code != "too_large":
                raise
            return None
    return {"columns": names, "rows": found.rows}


def _facts(
    entry: Entry, columns: list[TableColumn], space: Space, connection: sqlite3.Connection
) -> TableDescription:
    keys = foreign_keys(connection)
    name = entry.name.lower()
    left_out: dict[str, int] = {}
    shown_columns, left_out["columns"] = space.fitting(columns, lines.column)
    outward = (key for key in keys if key["table"] == entry.name)
    shown_keys, left_out["foreign_keys"] = space.fitting(outward, lines.foreign_key)
    known = (index for _, index in indexes(connection, entry.name))
    shown_indexes, left_out["indexes"] = space.fitting(known, lines.index)
    shown_triggers, left_out["triggers"] = space.fitting(triggers_of(connection, entry.name), str)
    inward = (key for key in keys if key["to_table"].lower() == name)
    shown_references, left_out["referenced_by"] = space.fitting(inward, lines.foreign_key)
    sql = short(entry.sql, _SQL)
    if not space.takes(sql):
        sql = short(entry.sql, 0)
    return {
        "name": entry.name,
        "kind": entry.kind,
        "strict": "STRICT" in entry.options,
        "without_rowid": "ROWID" in entry.options,
        "rows_estimated": row_estimates(connection).get(entry.name),
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


def _fitted(found: Statistics, space: Space) -> Statistics:
    columns, left_out = space.fitting(found["columns"], lines.statistics)
    return {**found, "columns": columns, "partial": found["partial"] or left_out > 0}


def table_text(table: TableDescription) -> str:
    """All about a table."""
    facts: list[str] = [table["kind"]]
    if table["strict"]:
        facts.append("STRICT")
    if table["without_rowid"]:
        facts.append("WITHOUT ROWID")
    if table["rows_estimated"] is not None:
        facts.append(f"about {table['rows_estimated']} rows by the last ANALYZE")
    if table["left_out"]:
        facts.append(f"left out: {lines.count_left_out(table['left_out'])}")
    statistics = table["statistics"]
    if statistics is not None:
        partial = ", partial: more rows, or columns that are missing" if statistics["partial"] else ""
        facts.append(f"statistics of {statistics['rows_examined']} rows{partial}")
    return "\n".join(("; ".join(facts), fenced([shown(table["name"]), *_parts(table)])))


def _parts(table: TableDescription) -> Iterator[str]:
    if table["problem"] is not None:
        yield f"problem: {table['problem']}"
    yield from lines.section("columns", [lines.column(one) for one in table["columns"]])
    yield from lines.section("foreign keys", [lines.foreign_key(one) for one in table["foreign_keys"]])
    yield from lines.section("referenced by", [lines.foreign_key(one) for one in table["referenced_by"]])
    yield from lines.section("indexes", [lines.index(one) for one in table["indexes"]])
    yield from lines.section("triggers", table["triggers"])
    yield from lines.section("sql", [table["sql"]])
    if table["sample"] is not None:
        sample = table["sample"]
        yield from lines.section("sample", [f"columns {line(sample['columns'])}", *map(line, sample["rows"])])
    if table["statistics"] is not None:
        yield from lines.section("statistics", [lines.statistics(one) for one in table["statistics"]["columns"]])

"""Each part of a description as a line of text."""

import json

from servers.sqlite.describing.schema import ForeignKey, Index, TableColumn
from servers.sqlite.describing.statistics import ColumnStatistics
from servers.sqlite.texts import listed, shown

__all__ = ["brief_index", "column", "foreign_key", "index", "statistics"]


def column(one: TableColumn) -> str:
    """Name, type, and what else is said of it."""
    parts = [shown(one["name"]), one["type"]]
    if one["primary_key"]:
        parts.append(f"primary key {one['primary_key']}")
    if one["not_null"]:
        parts.append("not null")
    if one["default"] is not None:
        parts.append(f"default {one['default']}")
    if one["kind"] != "ordinary":
        parts.append(one["kind"])
    return " ".join(filter(None, parts))


def foreign_key(one: ForeignKey) -> str:
    """From where to where, and what follows from changes there."""
    to = f"({listed(one['to_columns'])})" if one["to_columns"] else "(primary key)"
    line = f"{shown(one['table'])}({listed(one['columns'])}) -> {shown(one['to_table'])}{to}"
    for event, action in (("update", one["on_update"]), ("delete", one["on_delete"])):
        line += f" on {event} {action.lower()}" if action != "NO ACTION" else ""
    return line


def index(one: Index) -> str:
    """Its SQL, or what it is of where it comes from the table's own."""
    return one["sql"] or f"{shown(one['name'])} on ({listed(one['columns'])}) by {one['origin']}"


def brief_index(table: str, one: Index) -> str:
    """What it is of."""
    kinds = [word for word, is_so in (("unique", one["unique"]), ("partial", one["partial"])) if is_so]
    return " ".join([*kinds, f"{shown(one['name'])} on {shown(table)}({listed(one['columns'])})"])


def statistics(one: ColumnStatistics) -> str:
    """What a column holds."""
    distinct = "?" if one["distinct"] is None else one["distinct"]
    least, greatest = (json.dumps(one[end], ensure_ascii=False) for end in ("min", "max"))
    return f"{shown(one['column'])}: {one['nulls']} null, {distinct} distinct, {least} to {greatest}"

"""Formats the parts of a schema as lines of text, and counts the bytes that a result has for them."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from pydantic_core import to_json

from ..texts import format_name, format_names
from .records import ColumnStatistics, ForeignKey, Index, TableColumn

T = TypeVar("T")
_SEPARATOR_BYTES = 4
"""Size of a line's end and indentation, in bytes."""


def format_column(column: TableColumn) -> str:
    """Format the name, the type, and the other properties of a column."""
    parts = [format_name(column["name"]), column["type"]]
    if column["primary_key"]:
        parts.append(f"primary key {column['primary_key']}")
    if column["not_null"]:
        parts.append("not null")
    if column["default"] is not None:
        parts.append(f"default {column['default']}")
    if column["kind"] != "ordinary":
        parts.append(column["kind"])
    if "comment" in column:
        parts.append(f"-- {column['comment']}")
    return " ".join(filter(None, parts))


def format_foreign_key(key: ForeignKey) -> str:
    """Format both ends of a foreign key, and its actions."""
    to = f"({format_names(key['to_columns'])})" if key["to_columns"] else "(primary key)"
    line = f"{format_name(key['table'])}({format_names(key['columns'])}) -> {format_name(key['to_table'])}{to}"
    for event, action in (("update", key["on_update"]), ("delete", key["on_delete"])):
        line += f" on {event} {action.lower()}" if action != "NO ACTION" else ""
    return line


def format_index(index: Index) -> str:
    """Return the SQL of an index. If a constraint of the table created it, there is none, so return its name and
    columns."""
    return index["sql"] or f"{format_name(index['name'])} on ({format_names(index['columns'])}) by {index['origin']}"


def format_brief_index(table: str, index: Index) -> str:
    """Format the name, table and columns of an index."""
    kinds = [word for word, is_so in (("unique", index["unique"]), ("partial", index["partial"])) if is_so]
    return " ".join(
        [*kinds, f"{format_name(index['name'])} on {format_name(table)}({format_names(index['columns'])})"]
    )


def format_statistics(statistics: ColumnStatistics) -> str:
    """Format the statistics of a column."""
    distinct = "?" if statistics["distinct"] is None else statistics["distinct"]
    least, greatest = (json.dumps(statistics[end], ensure_ascii=False) for end in ("min", "max"))
    return (
        f"{format_name(statistics['column'])}: {statistics['nulls']} null, {distinct} distinct, {least} to {greatest}"
    )


def format_left_out(left_out: dict[str, int]) -> str:
    """Format the counts of omitted parts."""
    return ", ".join(f"{count} {part.replace('_', ' ')}" for part, count in left_out.items())


def format_section(title: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield the title and the lines of a section; nothing if it has no parts."""
    if parts:
        yield f"{title}:"
        yield from ("  " + part.replace("\n", "\n  ") for part in parts)


class ByteBudget:
    """Counts the bytes that are left for text. The text is measured as JSON."""

    def __init__(self, size: int) -> None:
        self.left = size

    def take(self, line: str) -> bool:
        """If a text of one or more lines fits, reserve its bytes and return True."""
        size = len(to_json(line)) + _SEPARATOR_BYTES * (1 + line.count("\n"))
        if size > self.left:
            return False
        self.left -= size
        return True

    def select_fitting(self, items: Iterable[T], line: Callable[[T], str]) -> tuple[list[T], int]:
        """Return the items whose lines fit, and the number of the others. `line` returns the line of an item."""
        fitting_items: list[T] = []
        left_out = 0
        for item in items:
            if self.left > _SEPARATOR_BYTES and self.take(line(item)):
                fitting_items.append(item)
            else:
                left_out += 1
        return fitting_items, left_out

    def split_off(self, share: float) -> "ByteBudget":
        """Split off this share of the remaining bytes as a separate budget."""
        size = int(self.left * share)
        self.left -= size
        return ByteBudget(size)

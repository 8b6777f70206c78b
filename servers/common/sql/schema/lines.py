"""Each part of a description as a line of text, and as many lines as one answer may have."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from pydantic_core import to_json

from servers.common.sql.schema.records import ColumnStatistics, ForeignKey, Index, TableColumn
from servers.common.sql.texts import format_name, format_names

T = TypeVar("T")
_BETWEEN = 4
"""Bytes before a line: its end and its indentation."""


def format_column(one: TableColumn) -> str:
    """Name, type, and what else is said of it."""
    parts = [format_name(one["name"]), one["type"]]
    if one["primary_key"]:
        parts.append(f"primary key {one['primary_key']}")
    if one["not_null"]:
        parts.append("not null")
    if one["default"] is not None:
        parts.append(f"default {one['default']}")
    if one["kind"] != "ordinary":
        parts.append(one["kind"])
    if "comment" in one:
        parts.append(f"-- {one['comment']}")
    return " ".join(filter(None, parts))


def format_foreign_key(one: ForeignKey) -> str:
    """From where to where, and what follows from changes there."""
    to = f"({format_names(one['to_columns'])})" if one["to_columns"] else "(primary key)"
    line = f"{format_name(one['table'])}({format_names(one['columns'])}) -> {format_name(one['to_table'])}{to}"
    for event, action in (("update", one["on_update"]), ("delete", one["on_delete"])):
        line += f" on {event} {action.lower()}" if action != "NO ACTION" else ""
    return line


def format_index(one: Index) -> str:
    """Its SQL, or what it is of where it comes from the table's own."""
    return one["sql"] or f"{format_name(one['name'])} on ({format_names(one['columns'])}) by {one['origin']}"


def format_brief_index(table: str, one: Index) -> str:
    """What it is of."""
    kinds = [word for word, is_so in (("unique", one["unique"]), ("partial", one["partial"])) if is_so]
    return " ".join([*kinds, f"{format_name(one['name'])} on {format_name(table)}({format_names(one['columns'])})"])


def format_statistics(one: ColumnStatistics) -> str:
    """What a column holds."""
    distinct = "?" if one["distinct"] is None else one["distinct"]
    least, greatest = (json.dumps(one[end], ensure_ascii=False) for end in ("min", "max"))
    return f"{format_name(one['column'])}: {one['nulls']} null, {distinct} distinct, {least} to {greatest}"


def format_left_out(left_out: dict[str, int]) -> str:
    """How much of what there was no room for."""
    return ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in left_out.items())


def format_section(title: str, parts: Sequence[str]) -> Iterator[str]:
    """The lines of a part with its title; none where it is empty."""
    if parts:
        yield f"{title}:"
        yield from ("  " + part.replace("\n", "\n  ") for part in parts)


class ByteBudget:
    """The bytes of text that are left, as JSON."""

    def __init__(self, size: int) -> None:
        self.left = size

    def takes(self, line: str) -> bool:
        """Whether there is room for a line, which may be several; then it is used."""
        size = len(to_json(line)) + _BETWEEN * (1 + line.count("\n"))
        if size > self.left:
            return False
        self.left -= size
        return True

    def fitting(self, items: Iterable[T], line: Callable[[T], str]) -> tuple[list[T], int]:
        """Those items for whose lines there is room, and how many others there are."""
        taken: list[T] = []
        left_out = 0
        for item in items:
            if self.left > _BETWEEN and self.takes(line(item)):
                taken.append(item)
            else:
                left_out += 1
        return taken, left_out

    def share(self, parts: int) -> "ByteBudget":
        """One of so many equal parts of what is left, as a space of its own."""
        size = self.left // parts
        self.left -= size
        return ByteBudget(size)

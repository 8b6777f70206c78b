"""What a query gives, in both forms."""

from collections.abc import Sequence
from typing import Any

from typing_extensions import TypedDict

from servers.sqlite.reading.cells import column
from servers.sqlite.reading.snapshots import Found
from servers.sqlite.reading.texts import fenced

__all__ = ["QueryResult", "result_of", "text_of"]


class ResultColumn(TypedDict):
    """A column of a result."""

    name: str
    declared: str | None
    """The type it was declared with; None for an expression."""
    types: tuple[str, ...]
    """The storage classes of the values given."""


class QueryResult(TypedDict):
    """Rows of a query."""

    columns: list[ResultColumn]
    rows: list[tuple[Any, ...]]
    truncated: bool
    next_cursor: str | None
    changed: bool
    elapsed_ms: float


def result_of(found: Found, declared: Sequence[str | None]) -> QueryResult:
    """The rows as data; `declared` may be empty, where no types are known."""
    names, page = found.answer.names, found.answer.page
    known = declared if len(declared) == len(names) else [None] * len(names)
    return {
        "columns": [
            {"name": name, "declared": kind, "types": tuple(sorted(types))}
            for name, kind, types in zip(names, known, page.types, strict=True)
        ],
        "rows": page.rows,
        "truncated": found.answer.more,
        "next_cursor": found.cursor,
        "changed": found.changed,
        "elapsed_ms": round(found.answer.seconds * 1_000, 2),
    }


def text_of(found: Found, result: QueryResult) -> str:
    """The same as text."""
    columns = result["columns"]
    count = len(result["rows"])
    facts = [f"{count} row{'' if count == 1 else 's'}", f"{result['elapsed_ms']:g} ms"]
    if result["changed"]:
        facts.append("the database was changed since the rows before these, so some may be missing or double")
    if result["truncated"]:
        facts.append(f"cut; go on with cursor {result['next_cursor']}")
    if not columns:
        return "; ".join(facts)
    names = " | ".join(column([one["name"] for one in columns], 1_000).texts)
    kinds = " | ".join(f"{one['declared'] or '-'} ({', '.join(one['types'])})" for one in columns)
    return "\n".join(("; ".join(facts), fenced((names, kinds, *found.answer.page.lines))))

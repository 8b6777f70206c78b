"""What a query gives, in both forms: the same arrays of JSON, as data and as lines of a text."""

from collections.abc import Sequence
from typing import Any

from typing_extensions import TypedDict

from servers.sqlite.reading.snapshots import Found
from servers.sqlite.texts import NOTE, fenced, line

__all__ = ["QueryResult", "result_of", "text_of"]


class QueryResult(TypedDict):
    """Rows of a query."""

    note: str
    """How to take what follows."""
    truncated: bool
    next_cursor: str | None
    changed: bool
    elapsed_ms: float
    columns: Sequence[str]
    declared: Sequence[str | None]
    """The type that each column was declared with; None for an expression."""
    types: list[str]
    """The storage classes of each column's values."""
    rows: list[tuple[Any, ...]]


def result_of(found: Found, declared: Sequence[str | None]) -> QueryResult:
    """The rows as data; `declared` may be empty, where no types are known."""
    names, page = found.answer.names, found.answer.page
    return {
        "note": NOTE,
        "truncated": found.answer.more,
        "next_cursor": found.cursor,
        "changed": found.changed,
        "elapsed_ms": round(found.answer.seconds * 1_000, 2),
        "columns": names,
        "declared": declared if len(declared) == len(names) else [None] * len(names),
        "types": [", ".join(sorted(types)) for types in page.types],
        "rows": page.rows,
    }


def text_of(result: QueryResult) -> str:
    """The same as text."""
    count = len(result["rows"])
    facts = [f"{count} row{'' if count == 1 else 's'}", f"{result['elapsed_ms']:g} ms"]
    if result["changed"]:
        facts.append("the database was changed since the rows before these, so some may be missing or double")
    if result["truncated"]:
        facts.append(f"cut; go on with cursor {result['next_cursor']}")
    if not result["columns"]:
        return "; ".join(facts)
    heads = [f"{head} {line(result[head])}" for head in ("columns", "declared", "types")]
    return "\n".join(("; ".join(facts), fenced([*heads, *map(line, result["rows"])])))

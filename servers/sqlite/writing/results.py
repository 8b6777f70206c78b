"""What statements that change a database give, in both forms."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic_core import to_json
from typing_extensions import TypedDict

from servers.sqlite.errors import SqliteError
from servers.sqlite.reading.cells import column
from servers.sqlite.reading.texts import fenced
from servers.sqlite.writing.previews import TableChange
from servers.sqlite.writing.statements import Effect

__all__ = ["WriteResult", "Written", "written"]

_NAME = 1_000


class StatementResult(TypedDict):
    """What one statement did."""

    affected: int
    """Rows, by its own words."""
    last_insert_rowid: Any
    tables: Sequence[str]
    """Those whose rows it may have changed, also by triggers and foreign keys."""
    schema_changed: bool
    columns: Sequence[str]
    """Of the rows that it returned."""
    rows: Sequence[tuple[Any, ...]]
    truncated: bool


class TableResult(TypedDict):
    """What changes in one table; the first rows as they are before and after."""

    table: str
    counts: dict[str, int]
    columns: Sequence[str]
    rows: Sequence[tuple[Any, Any]]
    truncated: bool
    note: str


class WriteResult(TypedDict):
    """What the statements of one call did."""

    committed: bool
    statements: list[StatementResult]
    changes: list[TableResult]
    elapsed_ms: float


class Written(NamedTuple):
    """A result in both forms."""

    value: WriteResult
    text: str


def written(
    effects: Sequence[Effect], changes: Sequence[TableChange] | None, seconds: float, max_bytes: int
) -> Written:
    """The result of the statements, of a dry run with its `changes`. Raises SqliteError `too_large`.

    It is made before the commit, so that what can't be told is not done.
    """
    value: WriteResult = {
        "committed": changes is None,
        "statements": [_statement(effect) for effect in effects],
        "changes": [_change(change) for change in changes or ()],
        "elapsed_ms": round(seconds * 1_000, 2),
    }
    text = _text(value, effects)
    if len(to_json(value)) + len(to_json(text)) > max_bytes:
        raise SqliteError("too_large", "what the statements did is more than one answer may be", "Run fewer at once.")
    return Written(value, text)


def _statement(effect: Effect) -> StatementResult:
    return {
        "affected": effect.affected,
        "last_insert_rowid": column([effect.rowid], _NAME).cells[0],
        "tables": effect.tables,
        "schema_changed": effect.defined,
        "columns": effect.names,
        "rows": effect.page.rows,
        "truncated": effect.truncated,
    }


def _change(change: TableChange) -> TableResult:
    return {
        "table": change.table,
        "counts": change.counts,
        "columns": change.columns,
        "rows": change.rows,
        "truncated": change.truncated,
        "note": change.note,
    }


def _text(value: WriteResult, effects: Sequence[Effect]) -> str:
    done = "committed" if value["committed"] else "dry run: all of this was rolled back"
    lines = []
    for number, effect in enumerate(effects, 1):
        lines += [f"statement {number}: {'; '.join(_facts(effect))}"]
        if effect.names:
            lines += [_line(effect.names), *effect.page.lines]
    for change in value["changes"]:
        lines += _change_lines(change)
    return f"{done}; {value['elapsed_ms']:g} ms\n{fenced(lines)}"


def _facts(effect: Effect) -> list[str]:
    facts = [f"{effect.affected:,} row{'' if effect.affected == 1 else 's'} affected"]
    if effect.rowid is not None:
        facts.append(f"last_insert_rowid {effect.rowid}")
    if effect.tables:
        facts.append(f"tables {_line(effect.tables, ', ')}")
    if effect.defined:
        facts.append("the schema changed")
    if effect.names:
        count = len(effect.page.rows)
        facts.append(f"{'the first ' if effect.truncated else ''}{count} row{'' if count == 1 else 's'} returned")
    return facts


def _change_lines(change: TableResult) -> list[str]:
    counts = ", ".join(f"{count:,} {word}" for word, count in change["counts"].items() if count)
    facts = [part for part in (counts, change["note"], "only the first are shown" * change["truncated"]) if part]
    lines = [f"table {_line([change['table']])}: {'; '.join(facts)}"]
    if change["rows"]:
        lines.append(_line(change["columns"]))
    for before, after in change["rows"]:
        lines += [
            f"{sign} {json.dumps(row, ensure_ascii=False)}" for sign, row in (("-", before), ("+", after)) if row
        ]
    return lines


def _line(names: Sequence[str], between: str = " | ") -> str:
    return between.join(column(list(names), _NAME).texts)

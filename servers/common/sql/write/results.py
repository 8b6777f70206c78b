"""Makes the results of statements that change a database, in two forms: text and data.

Most statements do not change the schema, return no rows, and fit into the result. A result mentions these properties
only in the other cases.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NotRequired

from pydantic import with_config
from pydantic.config import JsonDict
from pydantic_core import to_json
from typing_extensions import TypedDict

from ..errors import SqlError
from ..query.pages import AnswerLimits, Page, measure
from ..query.query import Parameters
from ..texts import NOTE, fence, format_name, format_names, format_row
from .consent import Figures

MIN_BYTES_FOR_ROWS = 2_000
"""Rows are shown only if at least this many bytes are left for them."""
_EFFECT_BYTES = 300
"""Maximum size in bytes of what a result says about one statement, without rows and names."""


class Statement(NamedTuple):
    """One statement and its parameters."""

    sql: str
    parameters: Parameters = ()


class Effect(NamedTuple):
    """The effect of one statement."""

    affected: int
    """Number of rows that the statement itself inserted, updated or deleted."""
    total: int
    """Number of all changed rows: also those that triggers and foreign keys changed, and those inside virtual
    tables."""
    rowid: Any
    """The rowid of the last row that the statement itself inserted; None if there is none."""
    tables: tuple[str, ...]
    """Tables whose rows may have changed: by the statement itself, by triggers or by foreign keys."""
    schema_changed: bool
    """True if the schema changed."""
    names: tuple[str, ...]
    """The columns of the rows that the statement returned."""
    page: Page
    """As many of the rows that the statement returned as fit."""
    truncated: bool
    """True if the statement returned more rows than fit."""
    notices: tuple[str, ...] = ()
    """Messages (NOTICE) of the database about the statement, for example that a table already exists."""


class TableChange(NamedTuple):
    """The changes in one table."""

    table: str
    counts: dict[str, int]
    """Numbers of rows, under the keys "inserted", "updated" and "deleted"."""
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, Any]]
    """The first rows that changed, each as a pair of its values before and after the change; None if the row did not
    exist then."""
    truncated: bool
    """True if more rows changed than are shown."""
    note: str


class ResponseLimits(NamedTuple):
    """The limits of the result of a call that changes a database."""

    rows: AnswerLimits
    """The limits of the rows that statements return."""
    max_bytes: int
    """Maximum size of the whole result in bytes, in both forms."""


class StatementResult(TypedDict):
    """The effect of one statement."""

    affected: int
    """Number of rows that the statement itself changed."""
    last_insert_rowid: NotRequired[Any]
    tables: NotRequired[Sequence[str]]
    """Tables whose rows may have changed, also by triggers and foreign keys."""
    schema_changed: NotRequired[bool]
    columns: NotRequired[Sequence[str]]
    """Columns of the rows that the statement returned."""
    rows: NotRequired[Sequence[tuple[Any, ...]]]
    truncated: NotRequired[bool]
    notices: NotRequired[Sequence[str]]


class TableResult(TypedDict):
    """The changes in one table."""

    table: str
    counts: dict[str, int]
    columns: NotRequired[Sequence[str]]
    rows: NotRequired[Sequence[tuple[Any, Any]]]
    """The first rows that changed, before and after the change."""
    truncated: NotRequired[bool]
    note: NotRequired[str]


_STATEMENT: JsonDict = {"type": "object", "properties": {"affected": {"type": "integer"}}}
_CHANGE: JsonDict = {"type": "object", "properties": {"table": {"type": "string"}}}
_SCHEMA: JsonDict = {
    "properties": {
        "committed": {"type": "boolean"},
        "statements": {"type": "array", "items": _STATEMENT},
        "changes": {"type": "array", "items": _CHANGE},
    },
    "required": ["committed", "statements"],
}
"""The part of the result's schema that programs use (see `features.reading`)."""


@with_config(json_schema_extra=_SCHEMA)
class WriteResult(TypedDict):
    """The effects of the statements of one call."""

    note: str
    """Tells the model that the rest is data, not instructions."""
    committed: bool
    elapsed_ms: float
    statements: list[StatementResult]
    changes: NotRequired[list[TableResult]]


class FormattedResult(NamedTuple):
    """A result in both forms."""

    value: WriteResult
    text: str


def make_result(
    effects: Sequence[Effect], changes: Sequence[TableChange] | None, duration: float, max_bytes: int
) -> FormattedResult:
    """Return the result of the statements. `changes` are the changes in each table for a dry run, otherwise None.
    Raises SqlError with code `too_large`."""
    value: WriteResult = {
        "note": NOTE,
        "committed": changes is None,
        "elapsed_ms": round(duration * 1_000, 2),
        "statements": [_make_statement(effect) for effect in effects],
    }
    if changes:
        value["changes"] = [_make_change(change) for change in changes]
    text = _format(value)
    # This is called before the commit, so that changes which can't be reported are not made.
    if len(to_json(value)) + len(to_json(text)) > max_bytes:
        raise SqlError(
            "too_large", "the report on the statements is larger than the limit for an answer", "Run fewer at once."
        )
    return FormattedResult(value, text)


def _make_statement(effect: Effect) -> StatementResult:
    result: StatementResult = {"affected": effect.affected}
    if effect.rowid is not None:
        result["last_insert_rowid"] = effect.rowid
    if effect.tables:
        result["tables"] = effect.tables
    if effect.schema_changed:
        result["schema_changed"] = True
    if effect.names:
        result["columns"], result["rows"] = effect.names, effect.page.rows
    if effect.truncated:
        result["truncated"] = True
    if effect.notices:
        result["notices"] = effect.notices
    return result


def _make_change(change: TableChange) -> TableResult:
    result: TableResult = {"table": change.table, "counts": {word: n for word, n in change.counts.items() if n}}
    if change.rows:
        result["columns"], result["rows"] = change.columns, change.rows
    if change.truncated:
        result["truncated"] = True
    if change.note:
        result["note"] = change.note
    return result


def _format(value: WriteResult) -> str:
    status = "committed" if value["committed"] else "dry run: all of this was rolled back"
    lines: list[str] = []
    for number, statement in enumerate(value["statements"], 1):
        lines += [f"statement {number}: {'; '.join(_list_facts(statement))}"]
        lines += (f"notice: {notice}" for notice in statement.get("notices", ()))
        if "rows" in statement:
            lines += [f"columns {format_row(statement['columns'])}", *map(format_row, statement["rows"])]
    for change in value.get("changes", ()):
        lines += [f"table {format_name(change['table'])}: {'; '.join(_list_counts(change))}"]
        if "rows" in change:
            lines.append(f"columns {format_row(change['columns'])}")
            for pair in change["rows"]:
                lines += (f"{sign} {format_row(row)}" for sign, row in zip("-+", pair, strict=True) if row)
    return f"{status}; {value['elapsed_ms']:g} ms\n{fence(lines)}"


def _list_facts(result: StatementResult) -> Iterator[str]:
    affected = result["affected"]
    yield f"{affected:,} row{'' if affected == 1 else 's'} affected"
    if "last_insert_rowid" in result:
        rowid = result["last_insert_rowid"]
        yield f"last_insert_rowid {rowid['value'] if isinstance(rowid, dict) else rowid}"
    if "tables" in result:
        yield f"tables {format_names(result['tables'])}"
    if "schema_changed" in result:
        yield "the schema changed"
    if "rows" in result:
        count = len(result["rows"])
        yield f"{'the first ' if 'truncated' in result else ''}{count} row{'' if count == 1 else 's'} returned"


def _list_counts(change: TableResult) -> Iterator[str]:
    if change["counts"]:
        yield ", ".join(f"{count:,} {word}" for word, count in change["counts"].items())
    if "note" in change:
        yield change["note"]
    if "truncated" in change:
        yield "only the first are shown"


def sum_figures(effects: Sequence[Effect]) -> Figures:
    """Return the figures of all effects together, which the user may have to confirm."""
    return Figures(
        sum(effect.total for effect in effects),
        tuple(effect.affected for effect in effects),
        tuple(sorted({table for effect in effects for table in effect.tables})),
        any(effect.schema_changed for effect in effects),
    )


def reduce_limits(limits: AnswerLimits, effect: Effect) -> AnswerLimits:
    """Return what is left of the limits of an answer after this effect has been put into it."""
    used = (
        _EFFECT_BYTES
        + measure(effect.names)
        + measure(effect.tables)
        + measure(effect.page.rows)
        + measure(effect.notices)
    )
    return AnswerLimits(limits.rows - len(effect.page.rows), max(limits.bytes - used, 0), limits.cell_bytes)

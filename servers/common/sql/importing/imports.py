"""Does those parts of an import that are the same for all engines: it reads the rows of the file, finds the columns
that receive them, and writes the text of the result. The engine inserts the rows.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from shared.text import escape

from ..errors import SqlError
from ..jobs import Progress
from ..texts import fence, format_name, format_names, format_row
from .files import Opener, measure
from .records import Records
from .survey import Plan
from .tables import FormatRequest, read_table

_MAX_NAMES_LENGTH = 1_000
"""Maximum number of characters of a list of names in an error."""
_CHANGED_MEANWHILE = "the file was changed while it was being imported"


class Import(NamedTuple):
    """A request to import a file into a table."""

    table: str
    opener: Opener
    format_request: FormatRequest = FormatRequest()
    preview: bool = False
    """True if the import is only described, and nothing is changed."""


class ImportResult(NamedTuple):
    """The result of an import, or of its preview."""

    table: str
    created: bool
    rows: int
    columns: Sequence[tuple[str, str]]
    """The names and declared types of the table's columns that receive values."""
    duration: float
    decisions: Sequence[str] = ()
    """Sentences that explain how the file was read, and why."""
    preview: Sequence[Sequence[str | None]] | None = None
    """The first rows, if nothing was changed."""


def format_import(result: ImportResult) -> str:
    """Return the text of a result: the number of rows, the columns with declared types, and how the file was read."""
    rows = f"{result.rows:,} row{'' if result.rows == 1 else 's'}"
    into = "a new table" if result.created else "an existing table"
    columns = [f"{name} {kind}".strip() for name, kind in result.columns]
    lines = [f"table {format_name(result.table)}", f"columns {format_row(columns)}", *map(escape, result.decisions)]
    if result.preview is not None:
        lines += ["first rows", *map(format_row, result.preview)]
    status = (
        f"preview, nothing was changed: {rows} would be imported into"
        if result.preview is not None
        else f"{rows} imported into"
    )
    return f"{status} {into}; {result.duration * 1_000:.4g} ms\n{fence(lines)}"


@contextmanager
def open_rows(request: Import, plan: Plan, progress: Progress) -> Iterator[Records]:
    """Yield the rows of the file, to insert them. This is the second pass over the file; the first one made the
    `plan`. Raises SqlError if the file has changed between the two."""
    with read_table(request.opener, plan.table, request.format_request) as (file, rows):
        size, position = measure(file)

        def report() -> None:
            progress.check()
            progress.report(size + position(), 2 * size, f"{records.count:,} rows imported")

        records = Records(rows, plan.layout, report, plan.rows)
        try:
            yield records
        except ValueError:
            raise SqlError("bad_csv", _CHANGED_MEANWHILE, "Try again.") from None
        if records.filled != plan.rows:
            raise SqlError("bad_csv", _CHANGED_MEANWHILE, "Try again.")


def match_columns(plan: Plan, table_columns: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Return, for each field of a row, the name and the declared type of the table's column that receives it. Raises
    SqlError if the table has no such column."""
    columns = f"columns of the table: {format_names(name for name, _ in table_columns)}"[:_MAX_NAMES_LENGTH]
    if plan.layout.names is None:
        if len(plan.columns) != len(table_columns):
            reason = f"the first row has {len(plan.columns)} fields, but the table has {len(table_columns)} columns"
            raise SqlError("bad_csv", reason, quoted=[columns])
        return table_columns
    columns_by_name = {name.lower(): (name, kind) for name, kind in table_columns}
    unknown = [column.name for column in plan.columns if column.name.lower() not in columns_by_name]
    if unknown:
        reason = "the first row names a column that the table does not have"
        quoted = [f"missing: {format_names(unknown)}"[:_MAX_NAMES_LENGTH], columns]
        raise SqlError("bad_csv", reason, "Set header to 0 if that row is data.", quoted)
    return [columns_by_name[column.name.lower()] for column in plan.columns]

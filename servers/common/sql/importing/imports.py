"""An import, without the engine that inserts the rows: the rows of the file, their columns, and the text of the
result.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.files import Opener, measure
from servers.common.sql.importing.records import Records
from servers.common.sql.importing.survey import Plan
from servers.common.sql.importing.tables import FormatRequest, read_table
from servers.common.sql.jobs import Progress
from servers.common.sql.texts import fence, format_name, format_names, format_row
from shared.text import escape

_MAX_NAMES_LENGTH = 1_000
"""Maximum number of characters of a list of names in an error."""
_CHANGED = "the file was changed while it was being imported"


class Import(NamedTuple):
    """A request to import a file into a table."""

    table: str
    opener: Opener
    written: FormatRequest = FormatRequest()
    preview: bool = False
    """True if the import is only described, without changing anything."""


class ImportResult(NamedTuple):
    """The result of an import, or of its preview."""

    table: str
    created: bool
    rows: int
    columns: Sequence[tuple[str, str]]
    """The names and declared types of the columns that received values."""
    seconds: float
    words: Sequence[str] = ()
    """How the file was read, with the reasons."""
    preview: Sequence[Sequence[str | None]] | None = None
    """The first rows, if nothing was changed."""


def format_import(done: ImportResult) -> str:
    """Format the number of rows, the columns with their declared types, and how the file was read."""
    rows = f"{done.rows:,} row{'' if done.rows == 1 else 's'}"
    into = "a new table" if done.created else "an existing table"
    columns = [f"{name} {kind}".strip() for name, kind in done.columns]
    lines = [f"table {format_name(done.table)}", f"columns {format_row(columns)}", *map(escape, done.words)]
    if done.preview is not None:
        lines += ["first rows", *map(format_row, done.preview)]
    act = (
        f"preview, nothing was changed: {rows} would be imported into"
        if done.preview is not None
        else f"{rows} imported into"
    )
    return f"{act} {into}; {done.seconds * 1_000:.4g} ms\n{fence(lines)}"


@contextmanager
def open_rows(request: Import, plan: Plan, progress: Progress) -> Iterator[Records]:
    """Yield the rows of the file for the second reading. Raises SqlError if they differ from the first."""
    with read_table(request.opener, plan.table, request.written) as (file, rows):
        size, position = measure(file)

        def report() -> None:
            progress.check()
            progress.report(size + position(), 2 * size, f"{records.count:,} rows imported")

        records = Records(rows, plan.layout, report)
        try:
            yield records
        except ValueError:
            raise SqlError("bad_csv", _CHANGED, "Try again.") from None
        if records.count != plan.rows:
            raise SqlError("bad_csv", _CHANGED, "Try again.")


def match_columns(plan: Plan, there: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Return the table's columns for the fields of a row."""
    columns = f"columns of the table: {format_names(name for name, _ in there)}"[:_MAX_NAMES_LENGTH]
    if plan.layout.names is None:
        if len(plan.columns) != len(there):
            reason = f"the first row has {len(plan.columns)} fields, but the table has {len(there)} columns"
            raise SqlError("bad_csv", reason, quoted=[columns])
        return there
    columns_by_name = {name.lower(): (name, kind) for name, kind in there}
    unknown = [column.name for column in plan.columns if column.name.lower() not in columns_by_name]
    if unknown:
        reason = "the first row names a column that the table does not have"
        quoted = [f"missing: {format_names(unknown)}"[:_MAX_NAMES_LENGTH], columns]
        raise SqlError("bad_csv", reason, "Set header to 0 if that row is data.", quoted)
    return [columns_by_name[column.name.lower()] for column in plan.columns]

"""What an import is, apart from who puts the rows into the table: the rows of the file, the columns they are for, and
what the answer says of it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.importing.files import Opener, measure
from servers.common.sql.importing.records import Records
from servers.common.sql.importing.survey import Plan
from servers.common.sql.importing.tables import Written, read_table
from servers.common.sql.jobs import Progress
from servers.common.sql.texts import fence, format_name, format_names, format_row
from shared.text import escape

_NAMES = 1_000
"""Characters of a list of names in the words of an error."""
_CHANGED = "the file was changed while it was imported"


class Import(NamedTuple):
    """What to put where."""

    table: str
    opener: Opener
    written: Written = Written()
    preview: bool = False
    """Whether to say what would be done, and to do nothing."""


class Imported(NamedTuple):
    """Rows were put into a table, or would be."""

    table: str
    created: bool
    rows: int
    columns: Sequence[tuple[str, str]]
    """The names and declared types of those that got values."""
    seconds: float
    words: Sequence[str] = ()
    """How the file was read, and why so."""
    preview: Sequence[Sequence[str | None]] | None = None
    """The first rows, where nothing was done."""


def format_import(done: Imported) -> str:
    """How many rows went where, the columns with their declared types, and how the file was read."""
    rows = f"{done.rows:,} row{'' if done.rows == 1 else 's'}"
    into = "a new table" if done.created else "a table that was there"
    columns = [f"{name} {kind}".strip() for name, kind in done.columns]
    lines = [f"table {format_name(done.table)}", f"columns {format_row(columns)}", *map(escape, done.words)]
    if done.preview is not None:
        lines += ["first rows", *map(format_row, done.preview)]
    act = (
        f"preview, nothing was changed: {rows} would go into" if done.preview is not None else f"{rows} imported into"
    )
    return f"{act} {into}; {done.seconds * 1_000:.4g} ms\n{fence(lines)}"


@contextmanager
def open_rows(wanted: Import, plan: Plan, progress: Progress) -> Iterator[Records]:
    """The rows of the file for a second time. Raises SqlError where they are others than the first time."""
    with read_table(wanted.opener, plan.table, wanted.written) as (file, rows):
        size, position = measure(file)

        def tell() -> None:
            progress.check()
            progress.tell(size + position(), 2 * size, f"{records.count:,} rows imported")

        records = Records(rows, plan.layout, tell)
        try:
            yield records
        except ValueError:
            raise SqlError("bad_csv", _CHANGED, "Try again.") from None
        if records.count != plan.rows:
            raise SqlError("bad_csv", _CHANGED, "Try again.")


def match_columns(plan: Plan, there: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Return the columns of the table that the fields of a row are for."""
    columns = f"columns of the table: {format_names(name for name, _ in there)}"[:_NAMES]
    if plan.layout.names is None:
        if len(plan.columns) != len(there):
            reason = f"the first row has {len(plan.columns)} fields, and the table {len(there)} columns"
            raise SqlError("bad_csv", reason, quoted=[columns])
        return there
    known = {name.lower(): (name, kind) for name, kind in there}
    unknown = [column.name for column in plan.columns if column.name.lower() not in known]
    if unknown:
        reason = "the table has no such column as the first row names"
        quoted = [f"missing: {format_names(unknown)}"[:_NAMES], columns]
        raise SqlError("bad_csv", reason, "Set header to false where that row is data.", quoted)
    return [known[column.name.lower()] for column in plan.columns]

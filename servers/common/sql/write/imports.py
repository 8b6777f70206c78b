"""What an import is, apart from who puts the rows into the table: the rows of the CSV, the columns they are for, and
what is told of it.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, Protocol

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import fence, format_name, format_names, format_row
from servers.common.sql.write.csvs import CsvFormat, Opener, Records, measure

_NAMES = 1_000
"""Characters of a list of names in the words of an error."""


class Import(NamedTuple):
    """What to put where."""

    table: str
    text: Opener
    form: CsvFormat


class Imported(NamedTuple):
    """Rows were put into a table."""

    table: str
    created: bool
    rows: int
    columns: Sequence[tuple[str, str]]
    """The names and declared types of those that got values."""
    seconds: float


def format_import(done: Imported) -> str:
    """How many rows went where, and the columns with their declared types."""
    rows = f"{done.rows:,} row{'' if done.rows == 1 else 's'}"
    into = "a new table" if done.created else "a table that was there"
    columns = [f"{name} {kind}".strip() for name, kind in done.columns]
    told = fence([f"table {format_name(done.table)}", f"columns {format_row(columns)}"])
    return f"{rows} imported into {into}; {done.seconds * 1_000:.4g} ms\n{told}"


class Pass(NamedTuple):
    """One time that the text is read."""

    before: int
    """How often it was read before."""
    passes: int
    words: str


FIRST, LAST = Pass(0, 2, "rows looked at"), Pass(1, 2, "rows imported")
ONLY = LAST._replace(before=0, passes=1)


class Progress(Protocol):
    """Who is told how far the import is, and when to stop it."""

    where: str
    """What an error is said to be about."""

    def check(self) -> None:
        """Raises SqlError where it is time to stop."""

    def tell(self, done: int, total: int | None, words: str) -> None:
        """Says how far it is."""


@contextmanager
def open_rows(wanted: Import, which: Pass, progress: Progress) -> Iterator[Records]:
    """The rows of the CSV. Who raises within the block is told of by the row that was read last."""
    with wanted.text() as text:
        size, position = measure(text)

        def tell() -> None:
            progress.check()
            done = which.before * size + position()
            progress.tell(done, which.passes * size, f"{records.count:,} {which.words}")

        records = Records(text, wanted.form, tell)
        with ExitStack() as unless_whole:
            unless_whole.callback(lambda: setattr(progress, "where", records.where))
            with _noticing_changes():
                yield records
            unless_whole.pop_all()


@contextmanager
def _noticing_changes() -> Iterator[None]:
    """Says what it means where the second pass finds what the first one did not."""
    try:
        yield
    except UnicodeError:
        raise
    except ValueError:
        raise SqlError("bad_csv", "the file was changed while it was imported", "Try again.") from None


def match_columns(records: Records, there: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """The columns of the table that the fields of a row are for."""
    columns = f"columns of the table: {format_names(name for name, _ in there)}"[:_NAMES]
    if records.header is None:
        if records.width != len(there):
            reason = f"the first row has {records.width} fields, and the table {len(there)} columns"
            raise SqlError("bad_csv", reason, quoted=[columns])
        return there
    _require_distinct(records.header)
    known = {name.lower(): (name, kind) for name, kind in there}
    unknown = [name for name in records.header if name.lower() not in known]
    if unknown:
        reason = "the table has no such column as the first row names"
        raise SqlError("bad_csv", reason, quoted=[f"missing: {format_names(unknown)}"[:_NAMES], columns])
    return [known[name.lower()] for name in records.header]


def name_columns(records: Records, types: Sequence[str]) -> list[tuple[str, str]]:
    """The columns of a new table."""
    names = records.header or [f"c{number}" for number in range(1, records.width + 1)]
    _require_distinct(names)
    return list(zip(names, types, strict=True))


def _require_distinct(names: Sequence[str]) -> None:
    if "" in names:
        reason = "the first row names a column with nothing"
        raise SqlError("bad_csv", reason, "Set header to false where it has no names.")
    if len({name.lower() for name in names}) < len(names):
        raise SqlError("bad_csv", "the first row names a column twice")

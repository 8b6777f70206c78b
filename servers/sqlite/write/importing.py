"""Rows of a CSV put into a table, which is made where there is none."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from servers.sqlite.engine.limits import retry_locked
from servers.sqlite.engine.sql import quote
from servers.sqlite.errors import SqliteError
from servers.sqlite.texts import fence, format_name, format_names, format_row
from servers.sqlite.write.csvs import CsvFormat, Opener, Records, infer_types, measure
from servers.sqlite.write.session import Consent, Figures, Session

_NAMES = 1_000
"""Characters of a list of names in the words of an error."""
_OF: dict[str, Callable[[str], Any]] = {"INTEGER": int, "REAL": float, "TEXT": str}


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


def import_csv(wanted: Import, consent: Consent, session: Session) -> Imported | Figures:
    """Puts all rows into the table, in one transaction, or none.

    Gives figures, and changes nothing, where a user must agree to them first.

    An empty field is NULL. Raises SqliteError, which names the row.
    """
    began = time.monotonic()
    is_there = bool(retry_locked(session.deadline, partial(_list_columns, session, wanted.table)))
    # To look through the whole text for types takes a while, in which others may write.
    types = [] if is_there else _infer_types(session, wanted)
    with session.transaction():
        there = _list_columns(session, wanted.table)
        before = session.connection.total_changes
        with _open_rows(session, wanted, _ONLY if is_there else _LAST) as records:
            if there:
                columns = _match(records, there)
                rows: Iterator[Sequence[Any]] = ([field or None for field in row] for row in records)
            else:
                columns = _name_columns(records, types or _infer_types(session, wanted))
                _create(session, wanted.table, columns)
                rows = _convert(records, [kind for _, kind in columns])
            _insert(session, wanted.table, [name for name, _ in columns], rows)
        figures = Figures(session.connection.total_changes - before, (records.count,), (wanted.table,), not there)
        if not consent.covers(figures):
            return figures
        session.commit(figures)
    return Imported(wanted.table, not there, records.count, columns, time.monotonic() - began)


def format_import(done: Imported) -> str:
    """How many rows went where, and the columns with their declared types."""
    rows = f"{done.rows:,} row{'' if done.rows == 1 else 's'}"
    into = "a new table" if done.created else "a table that was there"
    columns = [f"{name} {kind}".strip() for name, kind in done.columns]
    told = fence([f"table {format_name(done.table)}", f"columns {format_row(columns)}"])
    return f"{rows} imported into {into}; {done.seconds * 1_000:.4g} ms\n{told}"


class _Pass(NamedTuple):
    """One time that the text is read."""

    before: int
    """How often it was read before."""
    passes: int
    words: str


_FIRST, _LAST = _Pass(0, 2, "rows looked at"), _Pass(1, 2, "rows imported")
_ONLY = _LAST._replace(before=0, passes=1)


@contextmanager
def _open_rows(session: Session, wanted: Import, which: _Pass) -> Iterator[Records]:
    deadline = session.deadline
    with wanted.text() as text:
        size, position = measure(text)

        def tell() -> None:
            deadline.check()
            done = which.before * size + position()
            deadline.tell(done, which.passes * size, f"{records.count:,} {which.words}")

        records = Records(text, wanted.form, tell)
        try:
            yield records
        except (sqlite3.Error, SqliteError, UnicodeError):
            deadline.where = records.where
            raise
        except ValueError:
            raise SqliteError("bad_csv", "the file was changed while it was imported", "Try again.") from None


def _infer_types(session: Session, wanted: Import) -> list[str]:
    with _open_rows(session, wanted, _FIRST) as records:
        return infer_types(records)


def _list_columns(session: Session, table: str) -> list[tuple[str, str]]:
    """The columns of the table that take values, with their declared types; none where there is no such table."""
    return [(name, kind) for name, kind, hidden in session.columns(table) if not hidden]


def _match(records: Records, there: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """The columns of the table that the fields of a row are for."""
    columns = f"columns of the table: {format_names(name for name, _ in there)}"[:_NAMES]
    if records.header is None:
        if records.width != len(there):
            reason = f"the first row has {records.width} fields, and the table {len(there)} columns"
            raise SqliteError("bad_csv", reason, quoted=[columns])
        return there
    _require_distinct(records.header)
    known = {name.lower(): (name, kind) for name, kind in there}
    unknown = [name for name in records.header if name.lower() not in known]
    if unknown:
        reason = "the table has no such column as the first row names"
        raise SqliteError("bad_csv", reason, quoted=[f"missing: {format_names(unknown)}"[:_NAMES], columns])
    return [known[name.lower()] for name in records.header]


def _name_columns(records: Records, types: Sequence[str]) -> list[tuple[str, str]]:
    """The columns of a new table."""
    names = records.header or [f"c{number}" for number in range(1, records.width + 1)]
    _require_distinct(names)
    return list(zip(names, types, strict=True))


def _require_distinct(names: Sequence[str]) -> None:
    if "" in names:
        reason = "the first row names a column with nothing"
        raise SqliteError("bad_csv", reason, "Set header to false where it has no names.")
    if len({name.lower() for name in names}) < len(names):
        raise SqliteError("bad_csv", "the first row names a column twice")


def _create(session: Session, table: str, columns: Sequence[tuple[str, str]]) -> None:
    defined = ", ".join(f"{quote(name)} {kind}" for name, kind in columns)
    session.connection.execute(f"CREATE TABLE main.{quote(table)} ({defined})").close()


def _convert(records: Records, kinds: Sequence[str]) -> Iterator[Sequence[Any]]:
    conversions = [_OF[kind] for kind in kinds]
    for row in records:
        yield [of(field) if field else None for of, field in zip(conversions, row, strict=True)]


def _insert(session: Session, table: str, names: Sequence[str], rows: Iterator[Sequence[Any]]) -> None:
    columns = ", ".join(map(quote, names))
    marks = ", ".join("?" * len(names))
    sql = f"INSERT INTO main.{quote(table)} ({columns}) VALUES ({marks})"  # noqa: S608 - the names are quoted
    session.connection.executemany(sql, rows).close()

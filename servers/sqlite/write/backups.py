"""Makes consistent copies of a database while it is in use."""

import errno
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from servers.common.sql.errors import SqlError
from servers.common.sql.texts import fence
from shared.program.files.atomic import rename, sync, sync_directory
from shared.program.files.entries import create, entry_at

from ..engine.deadline import StatementDeadline, retry_locked
from ..engine.entries import hold_snapshot, keeps_snapshots

_SUFFIX = ".part"
"""The suffix of the name of a copy until the copy is complete."""

_STEP_PAGES = 256
"""Number of database pages that are copied between checks of the deadline, usually one mebibyte."""
_MAX_PROBLEMS = 10
"""Maximum number of errors that the integrity check reports."""
_CHECK_INSTRUCTIONS = 4_000
"""Number of instructions of SQLite's virtual machine between checks of the clock."""


class Backup(NamedTuple):
    """The result of a backup."""

    file: str
    """The name of the file in the operator's directory."""
    bytes: int
    integrity: list[str]
    """The output of SQLite's `integrity_check`: "ok", or the errors."""
    duration: float
    """Number of seconds that the backup took."""


def back_up(directory: Path, name: str, connection: sqlite3.Connection, deadline: StatementDeadline) -> Backup:
    """Copy the database of this connection to a new file in the directory, and check the copy.

    Queries can run during the copy. In WAL mode, so can changes; in other modes, each change by another connection
    restarts the copy. Raises SqlError.
    """
    began = time.monotonic()
    stem = f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    with reserve_name(directory, stem) as (part_file, file):
        keeps_snapshot = retry_locked(deadline, partial(keeps_snapshots, connection))
        with hold_snapshot(connection, deadline) if keeps_snapshot else nullcontext():
            _copy(connection, part_file, deadline)
        with part_file.open("rb+") as copy:
            sync(copy.fileno())
            size = copy.seek(0, os.SEEK_END)
        uri = f"{part_file.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as copy_connection:
            copy_connection.set_progress_handler(deadline, _CHECK_INSTRUCTIONS)
            integrity = [str(row[0]) for row in copy_connection.execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})")]
        deadline.check()
    return Backup(file, size, integrity, time.monotonic() - began)


def format_backup(backup: Backup) -> str:
    """Return the result of a backup as text."""
    facts = f"{backup.file}: {backup.bytes:,} bytes; {backup.duration * 1_000:.4g} ms; integrity check:"
    return f"{facts}\n{fence(backup.integrity)}"


def _copy(connection: sqlite3.Connection, part_file: Path, deadline: StatementDeadline) -> None:
    def step(status: int, remaining: int, pages: int) -> None:
        deadline.check()
        deadline.report(pages - remaining, pages, "copying")
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and not deadline.pause():
            raise SqlError("busy", "another process holds a lock on the database", "Try again.")

    with closing(
        sqlite3.connect(f"{part_file.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
    ) as target:
        # Write without a journal and without waiting for the disk, since an incomplete copy is useless anyway.
        target.execute("PRAGMA journal_mode = OFF")
        target.execute("PRAGMA synchronous = OFF")
        connection.backup(target, pages=_STEP_PAGES, progress=step, sleep=0)


@contextmanager
def reserve_name(directory: Path, stem: str) -> Iterator[tuple[Path, str]]:
    """Create an empty file with a temporary name; yield its path, and the final name, which it gets at the end of the
    block. If the block raises, the file is removed. The final name is `stem`.db, or `stem`-2.db if that exists, and
    so on. Raises SqlError."""
    try:
        part_file, name = _create_part_file(directory, stem)
    except OSError as error:
        raise _convert_error(error) from None
    try:
        yield part_file, name
        rename(entry_at(part_file), entry_at(directory / name))
        sync_directory(entry_at(part_file))
    except OSError as error:
        raise _convert_error(error) from None
    finally:
        part_file.unlink(missing_ok=True)


def _create_part_file(directory: Path, stem: str) -> tuple[Path, str]:
    number = 1
    while True:
        name = f"{stem}.db" if number == 1 else f"{stem}-{number}.db"
        part_file = directory / f"{name}{_SUFFIX}"
        number += 1
        try:
            os.close(create(entry_at(part_file), 0o600))
        except FileExistsError:
            continue
        # Only the process that has created the .part file may create the file without that suffix. So if that does
        # not exist now, its name stays free.
        if not os.path.lexists(directory / name):
            return part_file, name
        part_file.unlink()


def _convert_error(error: OSError) -> SqlError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SqlError("no_space", "the disk with the directory for files is full")
    return SqlError(
        "io_error", f"writing to the directory for files failed ({errno.errorcode.get(error.errno or 0, 'EIO')})"
    )

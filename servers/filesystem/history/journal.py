"""The journal of changes: a SQLite database outside the allowed directories, shared by all server processes.

A change is recorded, with the earlier contents, before anything is changed. If the process is killed or the machine
stops before `finish` is called, the change stays `pending`, and is settled later: the state of its paths shows
whether it was made (see `settling`). SQLite isolates the processes, and is consistent after a crash.

A deletion, or a change of several paths, is in the database and on the disk when `begin` returns. The record of most
other changes is in the spool of its process (see `spool`) until the journal is read or the spool gets long, and on
disk once the system writes it: waiting for the disk would cost as much as writing the file itself. If the machine
crashes first, the last changes are in the files but not in the journal, and can't be undone.

The oldest changes are deleted if all images together exceed the limit, or if they are too old. Only the user can read
the folder, since file contents may be secret.
"""

import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from shared.program.files.entries import create, entry_at

from .changes import Change, Step
from .images import Image, Images
from .spool import MAX_SIZE, Record, Spool, read_spool
from .states import State, encode_json

_SCHEMA = """
CREATE TABLE IF NOT EXISTS change (
    number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, act TEXT NOT NULL, status TEXT NOT NULL,
    run TEXT NOT NULL, undoes INTEGER, size INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS step (
    change INTEGER NOT NULL REFERENCES change ON DELETE CASCADE, number INTEGER NOT NULL, path BLOB NOT NULL,
    destination BLOB, before TEXT NOT NULL, after TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER, name TEXT,
    data BLOB
);
CREATE TABLE IF NOT EXISTS spool (name TEXT PRIMARY KEY, position INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS step_of ON step (change, number);
CREATE INDEX IF NOT EXISTS step_held ON step (digest);
CREATE INDEX IF NOT EXISTS undo_of ON change (undoes) WHERE undoes IS NOT NULL;
"""
_CHANGE = """
SELECT number, time, act, status, run, undoes,
    (SELECT max(number) FROM change AS other WHERE other.undoes = change.number AND other.status = 'done')
FROM change
"""
_STEP_BYTES = 500
"""Size in bytes of a step without its image."""
_CHECK_FRACTION = 64
"""Fraction of the limit that may be recorded before the size of all changes is computed again, which reads each of
them."""
_LOCK_SECONDS = 10.0
"""Seconds to wait for locks of other processes."""
_DAY_SECONDS = 86_400.0


class Limits(NamedTuple):
    """The maximum total size of all images in bytes, and the number of days that a change is kept."""

    size: int
    days: float


class Journal:
    """The journal in a folder, which is created if it is missing. Thread-safe. Raises OSError, sqlite3.Error."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.limits = limits
        self._runs, self._spools = folder / "runs", folder / "spools"
        for path in (folder, folder / "images", self._runs, self._spools):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.run = os.urandom(8).hex()
        """Identifies this use of the journal by a process; it differs each time that a process opens the journal."""
        self.images = Images(folder / "images", self.run)
        self._spool = Spool(self._spools, self.run)
        self._spooled: dict[int, float] = {}
        """The times of the changes in progress whose records are in the spool, by their number there."""
        self._time = 0.0
        self._run_lock = FileLock(self._runs / self.run, thread_local=False)
        self._run_lock.acquire()
        self._lock = threading.RLock()
        self._is_durable: bool | None = None
        """True if transactions wait for the disk; None until this is set for the first time."""
        self._recorded_bytes = 0
        """Number of bytes recorded since the size of all changes was last computed."""
        with ExitStack() as on_failure:
            on_failure.callback(self._end_run)
            database = folder / "journal.db"
            with suppress(FileExistsError):
                os.close(create(entry_at(database), 0o600))
            self._database = sqlite3.connect(
                database, timeout=_LOCK_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=32
            )
            on_failure.callback(self._database.close)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA foreign_keys = ON")
            self._database.execute("PRAGMA secure_delete = FAST")
            with self._transaction():
                for statement in _SCHEMA.split(";"):
                    self._database.execute(statement)
            self._delete_old()
            self._closing = on_failure.pop_all()

    def close(self) -> None:
        """Close the database."""
        with suppress(OSError, sqlite3.Error), self._lock:
            self._renew_spool()
        self._closing.close()

    def begin(self, act: str, steps: Sequence[Step], undoes: int | None = None) -> int:
        """Record a change that is about to be made and return its number, negative if the record is in the spool."""
        first = steps[0]
        has_file = any(step.image is not None and step.image.name is not None for step in steps)
        durable = len(steps) > 1 or first.after.kind == "absent"
        if not (durable or has_file or undoes is not None or first.destination is not None):
            with self._lock:
                # Records are sorted by time, so each gets a later time than the last, even if the clock goes back.
                self._time = max(time.time(), math.nextafter(self._time, math.inf))
                number = self._spool.begin(self._time, act, first)
                self._spooled[number] = self._time
            return -number
        if durable and has_file:
            self.images.sync_names()
        self.collect()
        with self._transaction(durable):
            number = self._insert(act, steps, (time.time(), "pending", self.run, undoes))
            unused = self._evict() if self._is_size_check_due() else []
        self.images.drop(unused)
        return number

    def finish(self, number: int, status: str = "done") -> None:
        """Record that the change has been made."""
        with self._lock:
            if number < 0:
                self._spooled.pop(-number)
                self._spool.mark(-number, status == "done")
                if self._spool.size >= min(MAX_SIZE, self.limits.size // _CHECK_FRACTION):
                    self._renew_spool()
                return
            self._set_durable(False)
            self._database.execute("UPDATE change SET status = ? WHERE number = ?", (status, number))

    def fail(self, number: int) -> int | None:
        """Record that a change failed and has to be settled. Return its number in the database; None if the database
        does not have it."""
        if number >= 0:
            return number
        with self._lock:
            time_ = self._spooled.pop(-number)
            self._spool.mark(-number, done=False)
            self.collect()
            query = "SELECT number FROM change WHERE run = ? AND status = 'pending' AND time = ?"
            row = self._database.execute(query, (self.run, time_)).fetchone()
        return None if row is None else int(row[0])

    def collect(self) -> None:
        """Move finished records from all spools to the database, and all records of processes that have ended."""
        with self._lock:
            sizes: dict[str, int] = {}
            for path in self._spools.iterdir():
                with suppress(FileNotFoundError):  # another process may delete it
                    sizes[path.name] = path.stat().st_size
            positions = self._positions()
            names = [name for name, size in sizes.items() if size != positions.get(name)]
            if not names:
                return
            ended: list[str] = []
            unused: list[str] = []
            with self._transaction():
                for record, run in sorted(self._read_records(names, ended), key=lambda item: item[0].time):
                    self._insert(record.act, [record.step], (record.time, record.status, run, None))
                if self._is_size_check_due():
                    unused = self._evict()
            self._drop_spools(ended)
        self.images.drop(unused)

    def _read_records(self, names: Sequence[str], ended: list[str]) -> list[tuple[Record, str]]:
        """Return the new records of these spools with their runs, and note how far they were read. The names of
        spools whose process has ended are added to `ended`.
        """
        positions = self._positions()
        records: list[tuple[Record, str]] = []
        for name in names:
            run = name.partition(".")[0]
            is_alive = self.is_alive(run)
            if not is_alive:
                ended.append(name)
            read = read_spool(self._spools / name, positions.get(name, 0), is_alive)
            if read is None:
                continue
            recorded: set[float] = set()
            if name in positions:
                # The spool is read from its oldest change in progress on, so later changes may be in the database.
                rows = self._database.execute("SELECT time FROM change WHERE run = ?", (run,))
                recorded = {time for (time,) in rows}
            records += [(record, run) for record in read[0] if record.time not in recorded]
            self._database.execute("INSERT OR REPLACE INTO spool VALUES (?, ?)", (name, read[1]))
        return records

    def amend(self, number: int, step: int, after: State) -> None:
        """Replace the state after a step of a change by `after`, to which the step has really led."""
        with self._transaction():
            query = "UPDATE step SET after = ? WHERE change = ? AND number = ?"
            self._database.execute(query, (encode_json((*after,)).decode(), number, step))

    def forget(self, number: int, steps: Sequence[int] | None = None) -> None:
        """Delete the record of a change that was not made, or only these steps of it."""
        with self._transaction():
            unused = self._remove([number]) if steps is None else []
            for index in steps or ():
                query = "DELETE FROM step WHERE change = ? AND number = ? RETURNING name"
                unused += [name for (name,) in self._database.execute(query, (number, index)).fetchall() if name]
        self.images.drop(unused)

    def changes(self) -> list[Change]:
        """Return all changes, newest first."""
        self.collect()
        with self._lock:
            return [Change(*row) for row in self._database.execute(f"{_CHANGE} ORDER BY number DESC")]

    def change(self, number: int) -> Change | None:
        """Return the change with that number."""
        self.collect()
        with self._lock:
            row = self._database.execute(f"{_CHANGE} WHERE number = ?", (number,)).fetchone()
        return None if row is None else Change(*row)

    def steps(self, number: int) -> list[Step]:
        """Return the steps of a change in order. Small images include their data."""
        query = "SELECT path, before, after, size, data, name, destination FROM step WHERE change = ? ORDER BY number"
        with self._lock:
            return [_step(row) for row in self._database.execute(query, (number,))]

    def paths(self, number: int) -> list[str]:
        """Return the paths that a change affects, including destinations."""
        query = "SELECT path, destination FROM step WHERE change = ? ORDER BY number"
        with self._lock:
            rows = self._database.execute(query, (number,)).fetchall()
        return [os.fsdecode(path) for row in rows for path in row if path is not None]

    def content(self, digest: str) -> bytes | None:
        """Return the file contents with this digest; None if no image holds them."""
        query = (
            "SELECT size, data, name FROM step WHERE digest = ? AND (data IS NOT NULL OR name IS NOT NULL) LIMIT 1"
        )
        with self._lock:
            row = self._database.execute(query, (digest,)).fetchone()
        with suppress(OSError):
            return None if row is None else self.images.read(Image(*row))
        return None

    def is_alive(self, run: str) -> bool:
        """Return True if the process with this `run` still has the journal open."""
        if run == self.run:
            return True
        path = self._runs / run
        lock = FileLock(path, thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        except OSError:
            return False
        with suppress(OSError):
            path.unlink()
        lock.release()
        return False

    def _insert(self, act: str, steps: Sequence[Step], origin: tuple[float, str, str, int | None]) -> int:
        """Insert a change and its steps. `origin` is its time, its status, its run, and the number of the change that
        it undoes."""
        size = sum(_STEP_BYTES + (step.image.size if step.image else 0) for step in steps)
        cursor = self._database.execute(
            "INSERT INTO change (time, act, status, run, undoes, size) VALUES (?, ?, ?, ?, ?, ?)",
            (origin[0], act, *origin[1:], size),
        )
        number = int(cursor.lastrowid or 0)
        self._database.executemany(
            "INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (_row(number, index, step) for index, step in enumerate(steps)),
        )
        self._recorded_bytes += size
        return number

    def _positions(self) -> dict[str, int]:
        """Return how many bytes of each spool are in the database."""
        return dict(self._database.execute("SELECT name, position FROM spool").fetchall())

    def _is_size_check_due(self) -> bool:
        return self._recorded_bytes * _CHECK_FRACTION >= self.limits.size

    def _renew_spool(self) -> None:
        """Move the records of this process to the database and begin a new spool, unless a change is in progress."""
        self.collect()
        name = self._spool.name
        if self._positions().get(name) == self._spool.size:
            self._spool.renew()
            self._drop_spools([name])

    def _drop_spools(self, names: Sequence[str]) -> None:
        """Delete spools whose records are in the database."""
        for name in names:
            # The file is deleted before its position: a file without a position would be read again from its start.
            with suppress(FileNotFoundError):
                (self._spools / name).unlink()
            self._database.execute("DELETE FROM spool WHERE name = ?", (name,))

    def _end_run(self) -> None:
        self._run_lock.release()
        with suppress(OSError):
            (self._runs / self.run).unlink()

    @contextmanager
    def _transaction(self, durable: bool = False) -> Iterator[None]:
        with self._lock:
            self._set_durable(durable)
            self._database.execute("BEGIN IMMEDIATE")
            with ExitStack() as on_failure:
                on_failure.callback(self._database.execute, "ROLLBACK")
                yield
                self._database.execute("COMMIT")
                on_failure.pop_all()

    def _set_durable(self, durable: bool) -> None:
        """Set whether the next transaction waits for the disk."""
        if durable is not self._is_durable:
            # With WAL, NORMAL leaves the database consistent after a crash, but without the last transactions.
            self._database.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._is_durable = durable

    def _evict(self) -> list[str]:
        """Delete the oldest changes until the rest fit the limit or only one is left; return the names of the deleted
        changes' images.
        """
        self._recorded_bytes = 0
        query = "SELECT coalesce(sum(size), 0), max(number) FROM change"
        total, last = self._database.execute(query).fetchone()
        numbers = []
        query = "SELECT number, size FROM change WHERE number < ? ORDER BY number"
        for number, size in self._database.execute(query, (last,)):
            if total <= self.limits.size:
                break
            numbers.append(number)
            total -= size
        return self._remove(numbers)

    def _remove(self, numbers: Sequence[int]) -> list[str]:
        """Delete the changes with these numbers, and return the names of their images."""
        names: list[str] = []
        for number in numbers:
            query = "SELECT name FROM step WHERE change = ? AND name IS NOT NULL"
            names += [name for (name,) in self._database.execute(query, (number,))]
            self._database.execute("DELETE FROM change WHERE number = ?", (number,))
        return names

    def _delete_old(self) -> None:
        """Delete changes beyond the age and size limits, and the files of images and runs that are no longer used."""
        with self._transaction():
            query = "SELECT number FROM change WHERE time < ?"
            oldest = time.time() - self.limits.days * _DAY_SECONDS
            unused = self._remove([number for (number,) in self._database.execute(query, (oldest,)).fetchall()])
            unused += self._evict()
        self.images.drop(unused)
        with self._lock:
            used = [name for (name,) in self._database.execute("SELECT name FROM step WHERE name IS NOT NULL")]
        self.images.drop_unused(used, self.is_alive)
        for path in list(self._runs.iterdir()):
            self.is_alive(path.name)


def _row(change: int, index: int, step: Step) -> tuple[object, ...]:
    image = step.image or (None, None, None)
    size, data, name = image
    destination = None if step.destination is None else os.fsencode(step.destination)
    states = encode_json((*step.before,)).decode(), encode_json((*step.after,)).decode()
    # A link's target is not a digest, and may not be UTF-8, the only text that SQLite accepts.
    digest = step.before.content if step.before.kind == "file" else ""
    return change, index, os.fsencode(step.path), destination, *states, digest, size, name, data


def _step(row: tuple[Any, ...]) -> Step:
    path, before, after, size, data, name, destination = row
    image = None if size is None else Image(size, data, name)
    moved = None if destination is None else os.fsdecode(destination)
    return Step(os.fsdecode(path), State(*json.loads(before)), State(*json.loads(after)), image, moved)

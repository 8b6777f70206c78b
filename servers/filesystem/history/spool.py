"""Records of changes that are not in the database yet.

A transaction costs as much as a small edit. So a process appends the record of a one-file change to its own file, the
spool, and appends a mark when the change is made; each is one write. A process that reads the journal first moves the
finished records of all spools to the database (see `Journal`). The records of a killed process are moved as
`pending`.

A record consists of a header (CRC-32, sizes), facts as JSON, and the earlier contents of the file. A mark has no
facts; instead of contents, it has the number of its record. Records after an incomplete one, for example after a
crash of the machine, are lost.
"""

import json
import os
import struct
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from shared.program.files.atomic import write_all
from shared.program.files.entries import create, entry_at

from .changes import Step
from .images import Image
from .states import State, encode_json

MAX_SIZE = 1 << 20
"""Size in bytes at which a spool's records are moved to the database even if no process reads the journal."""
_HEADER = struct.Struct("<III")
"""The CRC-32 of the facts and the data, and their sizes in bytes."""
_MARK = struct.Struct("<Q?")
"""The number of a record, and a flag that is True if its change is done."""


class Record(NamedTuple):
    """A recorded change of one path; `time` is in seconds since 1970, `status` done or pending."""

    time: float
    act: str
    step: Step
    status: str


class Spool:
    """The spool of this process: a file in the folder, created at the first change. Not thread-safe."""

    def __init__(self, folder: Path, run: str) -> None:
        self._folder = folder
        self._run = run
        self._generation = 0
        self._last_number = 0
        self._descriptor: int | None = None
        self._unwritten_marks = b""
        """Marks that could not be written yet."""
        self.size = 0

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self._run}.{self._generation}"

    def begin(self, time: float, act: str, step: Step) -> int:
        """Record a change that is about to be made, and return its number in the spool. Raises OSError."""
        self._last_number += 1
        size, data = (step.image.size, step.image.data) if step.image else (-1, None)
        facts = self._last_number, time, act, step.path, (*step.before,), (*step.after,), size, data is not None
        self._append(_record(encode_json(facts), data or b""))
        return self._last_number

    def mark(self, number: int, done: bool) -> None:
        """Record that the change is done, or that it failed and is pending."""
        mark = _record(b"", _MARK.pack(number, done))
        try:
            self._append(mark)
        except OSError:
            # Write the mark later: without it, the change would seem to be in progress.
            self._unwritten_marks += mark

    def renew(self) -> None:
        """Delete the file, all of whose records must be in the database. The next change creates a new file."""
        if self._descriptor is None:
            return
        os.close(self._descriptor)
        with suppress(OSError):
            (self._folder / self.name).unlink()
        self._descriptor, self.size = None, 0
        self._generation += 1

    def _append(self, record: bytes) -> None:
        if self._descriptor is None:
            self._descriptor = create(entry_at(self._folder / self.name), 0o600)
        if self._unwritten_marks:
            record = self._unwritten_marks + record
        try:
            write_all(self._descriptor, record)
        except OSError:
            # Remove the incomplete record, since nothing after it could be read.
            os.ftruncate(self._descriptor, self.size)
            os.lseek(self._descriptor, self.size, os.SEEK_SET)
            raise
        self._unwritten_marks = b""
        self.size += len(record)


def read_spool(path: Path, position: int, is_alive: bool) -> tuple[list[Record], int] | None:
    """Return the records of a spool from `position` on, and the position to continue from; None if the file does not
    exist. Raises OSError.

    If the process is alive, changes without a mark are in progress: they are left out, and the position is that of
    the first of them.
    """
    try:
        with path.open("rb") as file:
            file.seek(position)
            content = file.read()
    except FileNotFoundError:
        return None
    begun_changes: list[tuple[int, Sequence[Any], bytes]] = []
    marks: dict[int, bool] = {}
    start = 0
    while len(content) - start >= _HEADER.size:
        checksum, facts_size, data_size = _HEADER.unpack_from(content, start)
        begin = start + _HEADER.size
        end = begin + facts_size + data_size
        if end > len(content) or zlib.crc32(content[begin:end]) != checksum:
            break
        encoded, data = content[begin : begin + facts_size], content[begin + facts_size : end]
        if encoded:
            begun_changes.append((start, json.loads(encoded.decode()), data))
        else:
            number, done = _MARK.unpack(data)
            marks[number] = done
        start = end
    records: list[Record] = []
    unfinished: list[int] = []
    for record_start, facts, data in begun_changes:
        number, time, act, changed, before, after, size, has_data = facts
        if number not in marks and is_alive:
            unfinished.append(record_start)
            continue
        image = Image(size, data if has_data else None) if size >= 0 else None
        step = Step(changed, State(*before), State(*after), image)
        records.append(Record(time, act, step, "done" if marks.get(number) else "pending"))
    return records, position + min(unfinished, default=start)


def _record(facts: bytes, data: bytes) -> bytes:
    body = facts + data
    return _HEADER.pack(zlib.crc32(body), len(facts), len(data)) + body

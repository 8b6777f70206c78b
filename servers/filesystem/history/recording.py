"""Records the changes that one call is about to make.

A change is made in a `with` block of `Recorder.record`, which first calls a function that describes the affected
paths, and records them. If they can't be recorded, the change is made anyway, and `note` gives the reason. Without a
journal, nothing is recorded or read.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from servers.common.files.rooted_files import RootedFiles
from shared.coded_errors import os_errors
from shared.program.files.entries import Entry, read_bytes, stat_entry
from shared.program.files.metadata import Attributes

from ..errors import FilesError
from .changes import MAX_STEPS, NotRecorded, Step
from .images import MAX_INLINE_BYTES, Image
from .states import ABSENT, State, present_state, state_of

if TYPE_CHECKING:
    from .journal import Journal


class HistoryOptions(NamedTuple):
    """The folder of the journal (None if unknown), the maximum total size of its images in bytes, and the number of
    days that it keeps changes.
    """

    folder: Path | None
    size: int
    days: float


class History:
    """The journal of a server, opened at the first change. Thread-safe."""

    def __init__(self, options: HistoryOptions) -> None:
        self._options = options
        self._opening = threading.Lock()
        self._journal: Journal | None = None

    def journal(self, rooted: RootedFiles) -> "Journal":
        """Return the journal, with interrupted changes settled. Raises NotRecorded."""
        journal = self._journal
        if journal is None:
            with self._opening:
                journal = self._journal = self._journal or self._open(rooted)
        return journal

    def _open(self, rooted: RootedFiles) -> "Journal":
        import sqlite3

        from .journal import Journal, Limits
        from .settling import settle_all

        if self._options.folder is None:
            raise NotRecorded("there is no home directory for the journal")
        try:
            journal = Journal(self._options.folder, Limits(self._options.size, self._options.days))
            with ExitStack() as on_failure:
                on_failure.callback(journal.close)
                settle_all(journal, rooted)
                on_failure.pop_all()
        except (OSError, sqlite3.Error) as error:
            raise NotRecorded(_reason(error)) from None
        return journal

    def close(self) -> None:
        """Close the journal if it was opened."""
        if self._journal is not None:
            self._journal.close()


class FileVersion(NamedTuple):
    """A file as it was read before a change: its `stat`, its contents, which are None unless all were read, and its
    extended attributes."""

    stat: os.stat_result
    data: bytes | None
    attributes: Attributes


class Survey:
    """Collects the steps of a change that is about to be made: for each path, the current and the future state."""

    def __init__(self, journal: "Journal", rooted: RootedFiles) -> None:
        self.steps: list[Step] = []
        self._journal = journal
        self._rooted = rooted
        self._remaining = journal.limits.size

    def record_change(self, entry: Entry, after: State, version: FileVersion | None = None) -> None:
        """Record that the entry is about to change to `after`. `version` is the file as it was read, if it was read.
        Raises NotRecorded, OSError, PathError.
        """
        with os_errors(entry.place.path):
            status, data, attributes = version or (stat_entry(entry), None, None)
            if status is not None and stat.S_ISREG(status.st_mode):
                # Check before the file is read, which may take minutes.
                self._require_room(status.st_size)
            if data is None:
                data = self._read_small(entry, status)
            before = ABSENT if status is None else present_state(self._rooted, entry, status, data, attributes)
        if before.is_like(after):
            return
        image = None
        if before.kind == "file":
            self._require_room(before.size)
            self._remaining -= before.size
            image = self._journal.images.store(self._rooted, entry, before.size, data)
        self._add(Step(self._path(entry), before, after, image))

    def record_append(self, entry: Entry, old_data: bytes, after: State) -> None:
        """Record that data is about to be appended to the file at the entry, which contains `old_data`."""
        before = state_of(self._rooted, entry, old_data)
        self._add(Step(self._path(entry), before, after, Image(before.size)))

    def record_creation(self, path: str, after: State) -> None:
        """Record that an entry is about to be created at an unused path."""
        self._add(Step(path, ABSENT, after))

    def record_move(self, entry: Entry, destination: Entry) -> None:
        """Record that the entry is about to be moved."""
        with os_errors(entry.place.path):
            status = stat_entry(entry)
            data = self._read_small(entry, status)
            is_large = status is not None and stat.S_ISREG(status.st_mode) and data is None
            # For a large file only its size is recorded, so that recording takes no longer than the move.
            state = State("file", "", status.st_size) if status and is_large else state_of(self._rooted, entry, data)
        self._add(Step(self._path(entry), state, state, None, self._path(destination)))

    def drop_images(self) -> None:
        """Delete the images that were stored."""
        names = [step.image.name for step in self.steps if step.image and step.image.name]
        self._journal.images.drop(names)

    def _require_room(self, size: int) -> None:
        if size > self._remaining:
            raise NotRecorded(f"the change exceeds the journal's limit of {self._journal.limits.size:,} bytes")

    def _add(self, step: Step) -> None:
        if step.destination is None and step.before.is_like(step.after):
            return
        if len(self.steps) == MAX_STEPS:
            raise NotRecorded(f"more than {MAX_STEPS:,} entries")
        self.steps.append(step)

    def _read_small(self, entry: Entry, status: os.stat_result | None) -> bytes | None:
        """Return the contents of the file at the entry, which has this `status`, if it is small."""
        if status is None or not stat.S_ISREG(status.st_mode) or status.st_size > MAX_INLINE_BYTES:
            return None
        handle = self._rooted.open_entry(entry._replace(stat=status), entry.place.path)
        try:
            data = read_bytes(handle.descriptor, MAX_INLINE_BYTES + 1)
        finally:
            os.close(handle.descriptor)
        return data if len(data) <= MAX_INLINE_BYTES else None

    def _path(self, entry: Entry) -> str:
        return self._rooted.roots.path(entry.place)


class Recorder:
    """Records the changes of one call. `note` is the reason why a change was not recorded."""

    def __init__(self, history: History | None = None) -> None:
        self.is_on = history is not None
        self.note = ""
        self._history = history

    @contextmanager
    def record(
        self, rooted: RootedFiles, act: str, describe: Callable[[Survey], None], undoes: int | None = None
    ) -> Iterator[int | None]:
        """Let `describe` record the affected paths, then yield the change's number, or None if it is not recorded.
        The block makes the change. Raises PathError if another program changes the files before that.
        """
        recorded = self._begin(rooted, act, describe, undoes)
        if recorded is None:
            yield None
            return
        journal, number = recorded
        is_made = False
        try:
            yield number
            is_made = True
        finally:
            if is_made:
                import sqlite3

                # If this fails, the next process settles the change: the paths show that the change was made.
                with suppress(OSError, sqlite3.Error):
                    journal.finish(number)
            else:
                _abandon(journal, rooted, number)

    def _begin(
        self, rooted: RootedFiles, act: str, describe: Callable[[Survey], None], undoes: int | None
    ) -> "tuple[Journal, int] | None":
        """Return the journal and the number of the change in it; None if it is not recorded."""
        if self._history is None:
            return None
        import sqlite3

        try:
            journal = self._history.journal(rooted)
            survey, number = Survey(journal, rooted), None
            try:
                describe(survey)
                number = journal.begin(act, survey.steps, undoes) if survey.steps else None
            finally:
                if number is None:
                    survey.drop_images()
            return None if number is None else (journal, number)
        except NotRecorded as reason:
            self.note = str(reason)
        except FilesError as error:
            if error.code == "changed":
                raise
            self.note = error.reason
        except (OSError, sqlite3.Error) as error:
            self.note = _reason(error)
        return None


NOT_RECORDED = Recorder()
"""A recorder that records nothing."""


def _abandon(journal: "Journal", rooted: RootedFiles, number: int) -> None:
    """Record which steps of a failed change were made."""
    import sqlite3

    from .settling import settle

    # If this fails, the next process tries to settle the change again.
    with suppress(FilesError, OSError, sqlite3.Error):
        settled = journal.fail(number)
        if settled is not None:
            settle(journal, rooted, settled, failed=True)


def _reason(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return f"the journal can't be written ({os.strerror(number) if number else 'database error'})"

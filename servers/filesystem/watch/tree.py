"""Watches everything below a directory, or the entries that match a glob, and collects the changes.

The name and a mark are remembered for each entry that is examined, whether or not it matches the glob, so the memory
limit also bounds the cost of a check. The mark of a file changes with its size, modification time and inode. The mark
of a directory never changes, since changes to its entries are reported separately. So a chmod does not count as a
change, but a touch does. Links are followed only on the way to the directory itself. As in watchfiles' defaults,
directories in which tools store their own files, such as `.git`, are left out, unless the tree is inside one. So are
denied entries, and the temporary names of this server's own writes and deletions.

A check of the paths from notices examines only these entries; a full check reads every directory.
"""

import os
import stat
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from servers.common.files.rooted_files import RootedFiles
from servers.common.globs import Glob, States
from shared.program.files.atomic import is_temporary_name
from shared.program.files.entries import Place
from shared.program.files.system import SYSTEM

from ..errors import FilesError
from .fingerprint import trail_of

MAX_ENTRIES = 200_000
"""Maximum number of entries that all trees together remember."""
MAX_SCANNED = 500_000
"""Maximum number of entries examined in one check."""
IGNORED = frozenset(
    (
        *(".git", ".hg", ".svn", ".idea", ".tox", ".venv", "node_modules"),
        *("__pycache__", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache"),
    )
)
"""Names of directories that are left out."""

_DIRECTORY = 0
"""The mark of all directories: changes in a directory are reported separately."""

Parts = tuple[str, ...]


class Event(NamedTuple):
    """A change at a place: `kind` is created, modified or deleted."""

    kind: str
    place: Place


class EntryQuota:
    """The number of further entries that may be remembered, and the number used by each owner. Thread-safe."""

    def __init__(self, entries: int = MAX_ENTRIES) -> None:
        self._left = entries
        self._shares: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, owner: str = "") -> bool:
        """Reserve space for one entry, and return True if there was any. No owner may use more than is left for the
        other owners; the owner "" is exempt, and may use all of it.
        """
        with self._lock:
            if self._left <= 0 or (owner and self._shares[owner] >= self._left):
                return False
            self._left -= 1
            self._shares[owner] += 1
            return True

    def give(self, entries: int, owner: str = "") -> None:
        """Return space to the quota."""
        with self._lock:
            self._left += entries
            self._shares[owner] -= entries
            if not self._shares[owner]:
                del self._shares[owner]


class _Directory(NamedTuple):
    states: States
    entries: dict[str, int]


class Tree:
    """A watched tree. `take_events` returns the events since its last call. One thread may check the tree while
    another takes the events."""

    def __init__(self, rooted: RootedFiles, place: Place, glob: Glob, quota: EntryQuota, owner: str = "") -> None:
        """Create a tree whose entries count towards the owner's share."""
        self._rooted = rooted
        self._place = place
        self.place = rooted.roots.outer(place)
        """The place of the tree below the operator's roots."""
        self._glob = glob
        self._quota = quota
        self._owner = owner
        self._known: dict[Parts, _Directory] = {}
        """The directories as they were at the last check."""
        self._events: list[Event] = []
        self._scanned = 0
        """Number of entries examined in this check."""
        self._check_lock = threading.Lock()
        self._is_initialized = False
        self._path = ""
        self.is_full = False
        """True if there are more entries than may be remembered, so that some changes are not detected."""
        self.trail: tuple[str, ...] = ()
        """The paths whose changes affect the tree."""
        self.directories: tuple[str, ...] = ()
        """The directories all of whose entries affect the tree."""

    def check(self, noticed: Collection[str] | None) -> bool:
        """Check the paths from notices, or everything, and return True if there are changes since the last check."""
        with self._check_lock:
            before, self.trail = self.trail, trail_of(self._rooted, self._place)
            self._scanned = 0
            count = len(self._known)
            if noticed is None or before != self.trail or not self._known:
                self._path = self.trail[-1] if self.trail else self._rooted.roots.path(self._place)
                self._walk(())
            else:
                for path in sorted(noticed):
                    self._check_entry(path)
            if noticed is None or len(self._known) != count:
                self.directories = tuple(os.path.join(self._path, *parts) for parts in self._known)  # noqa: PTH118
            if not self._is_initialized:
                self._is_initialized = True
                self._events.clear()
            return bool(self._events)

    def take_events(self) -> list[Event]:
        """Return the events since the last call, oldest first."""
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """Return the tree's space to the quota."""
        self._quota.give(sum(len(directory.entries) for directory in self._known.values()), self._owner)
        self._known.clear()

    def _check_entry(self, path: str) -> None:
        """Check the entry at `path`, for which there was a notice."""
        *parents, name = path[len(self._path) :].strip(os.sep).split(os.sep)  # noqa: PTH206
        directory = self._known.get(tuple(parents))
        parts = (*parents, name)
        if directory is None or self._is_left_out(parts):
            return
        try:
            with self._rooted.locate(self._place_of(parts), follow=False) as entry:
                mark = None if entry.stat is None else _mark(entry.stat)
        except FilesError:
            mark = None
        self._update(directory, parts, mark)
        if mark == _DIRECTORY and parts not in self._known and self._may_contain_matches(directory, name):
            self._walk(parts)

    def _walk(self, parts: Parts) -> None:
        """Read the directory, and the directories below it that may contain matches."""
        pending = [parts]
        # If the initial check uses up the quota, nothing more can be recorded.
        while pending and (self._is_initialized or not self.is_full):
            pending += reversed(self._read_directory(pending.pop()))

    def _read_directory(self, parts: Parts) -> list[Parts]:
        """Read one directory, and return the directories in it."""
        try:
            marks = dict(self._read_marks(parts))
        except FilesError:
            self._forget(parts)
            return []
        if self._scanned > MAX_SCANNED:
            # The entries that were not read would look deleted, so the entries of this directory are not compared.
            self.is_full = True
            return []
        directory = self._known.get(parts)
        if directory is None:
            states = self._glob.step(self._known[parts[:-1]].states, parts[-1]) if parts else self._glob.start
            directory = self._known[parts] = _Directory(states, {})
        for name in sorted({*directory.entries, *marks}):
            self._update(directory, (*parts, name), marks.get(name))
        inner = (name for name, mark in directory.entries.items() if mark == _DIRECTORY)
        return [(*parts, name) for name in inner if self._may_contain_matches(directory, name)]

    def _may_contain_matches(self, directory: _Directory, name: str) -> bool:
        """Return True if an entry that the glob matches may be in the directory."""
        return name in directory.entries and self._glob.can_match_below(self._glob.step(directory.states, name))

    def _read_marks(self, parts: Parts) -> Iterator[tuple[str, int]]:
        """Yield the name and mark of each entry that is not left out."""
        place = self._place_of(parts)
        with self._rooted.open_directory(place, follow=not parts) as opened, SYSTEM.scan(opened) as entries:
            for entry in entries:
                self._scanned += 1
                if self._scanned > MAX_SCANNED:
                    return
                try:
                    mark = _mark(entry.stat(follow_symlinks=False))
                except OSError:
                    continue
                if not self._is_left_out((*parts, entry.name)):
                    yield entry.name, mark

    def _is_left_out(self, parts: Parts) -> bool:
        name = parts[-1]
        return name in IGNORED or is_temporary_name(name) or self._rooted.roots.denies(self._place_of(parts))

    def _update(self, directory: _Directory, parts: Parts, mark: int | None) -> None:
        """Remember `mark` for the entry (None if it does not exist), and record an event if the mark is new."""
        name = parts[-1]
        old = directory.entries.get(name)
        if old == mark:
            return
        if mark is None:
            self._quota.give(1, self._owner)
            del directory.entries[name]
        elif old is not None or self._quota.take(self._owner):
            directory.entries[name] = mark
        else:
            self.is_full = True
            return
        if old == _DIRECTORY:
            self._forget(parts)
        if self._glob.accepts(self._glob.step(directory.states, name)):
            kind = "created" if old is None else "deleted" if mark is None else "modified"
            self._events.append(Event(kind, self._place_of(parts)))

    def _forget(self, parts: Parts) -> None:
        """Forget everything below a directory that no longer exists, and record it as deleted."""
        pending = [parts]
        while pending:
            above = pending.pop()
            directory = self._known.pop(above, None)
            if directory is None:
                continue
            self._quota.give(len(directory.entries), self._owner)
            for name, mark in directory.entries.items():
                if self._glob.accepts(self._glob.step(directory.states, name)):
                    self._events.append(Event("deleted", self._place_of((*above, name))))
                if mark == _DIRECTORY:
                    pending.append((*above, name))

    def _place_of(self, parts: Parts) -> Place:
        return self._place._replace(parts=(*self._place.parts, *parts))


def _mark(status: os.stat_result) -> int:
    if stat.S_ISDIR(status.st_mode):
        return _DIRECTORY
    # 0 is the mark of directories, but a hash may also be 0.
    return hash((status.st_ino, status.st_size, status.st_mtime_ns, stat.S_IFMT(status.st_mode))) or 1

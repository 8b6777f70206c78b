"""The recent changes in all roots, for clients that poll instead of subscribing.

Several clients may read, each from its own cursor, and reading removes nothing. The journal is bounded: a reader
whose cursor is too old gets an overflow, and has to check the files itself. Watching begins with the first read and
ends some time after the last. A cursor from an earlier period of watching, or from another run of the server, is too
old as well.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import NamedTuple

import anyio

from servers.common.files.names import uri
from servers.common.files.rooted_files import RootedFiles
from servers.common.globs import Glob
from shared.concurrency import run_in_turns
from shared.program.files.entries import Place
from shared.steps import Steps, complete
from shared.text import display_name

from ..errors import FilesError
from ..names import add_uri
from ..search.page import ByteBudget, Page
from .fingerprint import trail_of
from .pacing import MAX_NOTICED
from .tree import Event, Tree
from .watcher import Watcher

MAX_ENTRIES = 10_000
"""Maximum number of entries in the journal."""
STEP_PLACES = 1_000
"""Number of changed places that are handled in one turn of the event loop."""
IDLE_SECONDS = 600.0
"""Seconds that watching continues without readers."""

_OVERHEAD_BYTES = 40
"""Size in bytes of a change's line without its path."""

_EVERYTHING = "**"


class Change(NamedTuple):
    """One entry: `kind` is created, modified or deleted; `path` is the displayed path; `time` is when it was
    detected, in seconds since 1970.
    """

    kind: str
    path: str
    time: float


class Changes(NamedTuple):
    """The changes since a cursor, oldest first, and the cursor to continue from.

    `more`: more changes can be read at once. `overflow`: the cursor was too old, so changes are missing and the
    client has to check the files itself. `partial`: there are too many files, so changes to some are not detected.
    """

    changes: tuple[Change, ...]
    cursor: str
    more: bool = False
    overflow: bool = False
    partial: bool = False


class Selection:
    """The requested changes: those below given directories whose paths match a glob relative to them."""

    def __init__(self, directories: Sequence[str], pattern: str | None) -> None:
        self._prefixes = [os.path.join(directory, "") for directory in directories]  # noqa: PTH118
        self._exact = set(directories) if pattern is None else set()
        self._glob = Glob([pattern or _EVERYTHING])

    def includes(self, path: str) -> bool:
        """Return True if a change of `path` was requested."""
        if path in self._exact:
            return True
        below = (path[len(prefix) :].split(os.sep) for prefix in self._prefixes if path.startswith(prefix))  # noqa: PTH206
        return any(self._glob.matches(parts) for parts in below)


class _Entry(NamedTuple):
    kind: str
    path: str
    time: float


class Journal:
    """The journal of a watcher. For one thread; `run` it in a task."""

    def __init__(
        self, rooted: RootedFiles, watcher: Watcher, size: int = MAX_ENTRIES, idle: float = IDLE_SECONDS
    ) -> None:
        self._rooted = rooted
        self._roots = rooted.roots
        self._watcher = watcher
        self._idle = idle
        self._entries: deque[_Entry] = deque(maxlen=size)
        self._last_number = 0
        """The number of the newest entry, counted from 1."""
        self._run = os.urandom(4).hex()
        self._trees: list[Tree] = []
        self._written_places: list[Place] | None = []
        """The places where this server itself wrote since the last read; None if there are too many to remember."""
        self._begin_lock, self._check_lock = anyio.Lock(), anyio.Lock(fast_acquire=True)
        self._watching = anyio.Event()
        """Set while the roots are watched."""
        self._entry_added = anyio.Event()
        """Set when entries are added, and then replaced by a new event."""
        self._read_at = 0.0
        """The time of the last read (`time.monotonic`)."""
        self.on_own_write: Callable[[Place], None] = lambda _: None
        """Called with each place where this server itself wrote. It must not block."""

    @property
    def cursor(self) -> str | None:
        """The cursor for all changes from now on; None if nothing is watched."""
        return f"{self._run}-{self._last_number}" if self._trees else None

    async def run(self) -> None:
        """Stop watching once there has been no reader for a while. Runs until cancelled."""
        while True:
            await self._watching.wait()
            remaining = self._read_at + self._idle - time.monotonic()
            if remaining > 0:
                await anyio.sleep(remaining)
            else:
                self._unwatch()
                self._trees = []
                self._entries.clear()
                self._run = os.urandom(4).hex()
                self._watching = anyio.Event()

    async def read(self, page: Page, selection: Selection, wait: float) -> Changes:
        """Return a page of the changes since its cursor. If there are none, wait up to `wait` seconds for one.

        Without a cursor, return only a new cursor. Raises FilesError with code `bad_cursor`, and `too_many`.
        """
        await self._begin_watching()
        await self._check_own_writes()
        number = self._last_number if page.cursor is None else self._parse_cursor(page.cursor)
        if page.cursor is None or number is None:
            return self._changes([], self._last_number, overflow=page.cursor is not None)
        deadline = time.monotonic() + wait
        while True:
            if number < self._last_number - len(self._entries):
                return self._changes([], self._last_number, overflow=True)
            entries, number = self._entries_after(number, selection, page)
            self._read_at = time.monotonic()
            if entries or self._read_at >= deadline:
                return self._changes(entries, number)
            with anyio.move_on_after(deadline - self._read_at):
                await self._entry_added.wait()

    def add_write(self, place: Place) -> None:
        """Note that this server itself changed something at `place`, so that later reads include it."""
        self.on_own_write(place)
        if self._trees and self._written_places is not None:
            self._written_places.append(place)
            if len(self._written_places) > MAX_NOTICED:
                self._written_places = None

    async def _begin_watching(self) -> None:
        """Watch all roots, unless they are watched already."""
        self._read_at = time.monotonic()
        async with self._begin_lock:
            if self._trees:
                return
            paths = self._roots.paths
            outer = [number for number, path in enumerate(paths) if not any(other in path.parents for other in paths)]
            with ExitStack() as on_failure:
                # If this is cancelled between two roots, the first one must not stay watched: the next call begins
                # with it again.
                on_failure.callback(self._unwatch)
                trees: list[Tree] = []
                for number in outer:
                    place = Place(number, (), str(paths[number]))
                    trees.append(await self._watcher.watch_tree(_key(number), place, [_EVERYTHING], self._record))
                self._trees = trees
                on_failure.pop_all()
            self._watching.set()

    async def _check_own_writes(self) -> None:
        """Check the places where this server itself wrote, since the system may report these changes later."""
        # Further readers wait for the first one, so that they get its changes too.
        async with self._check_lock:
            places, self._written_places = self._written_places, []
            if places == []:
                return
            with ExitStack() as on_failure:
                # If this is cancelled, the next reader checks everything.
                on_failure.callback(setattr, self, "_written_places", None)
                for tree in self._trees:
                    await self._watcher.run_in_thread(tree.place, _check_places, tree, self._rooted, places)
                    await self._record(tree.take_events())
                on_failure.pop_all()

    def _unwatch(self) -> None:
        for index in range(len(self._roots.paths)):
            self._watcher.unwatch(_key(index))

    async def _record(self, events: list[Event]) -> None:
        steps = self._record_steps(events, round(time.time(), 3))
        if len(events) <= STEP_PLACES:
            complete(steps)
            return
        # The events have been taken from the tree, so they would be lost if the caller were cancelled halfway.
        with anyio.CancelScope(shield=True):
            await run_in_turns(steps)

    def _record_steps(self, events: list[Event], now: float) -> Steps[None]:
        for start in range(0, len(events), STEP_PLACES):
            if start:
                yield
            entries = [
                _Entry(event.kind, self._roots.path(event.place), now)
                for event in events[start : start + STEP_PLACES]
            ]
            self._entries += entries
            self._last_number += len(entries)
        self._entry_added.set()
        self._entry_added = anyio.Event()

    def _parse_cursor(self, cursor: str) -> int | None:
        """Return the number of the last entry read at that cursor; None if it is no longer known."""
        run, _, number = cursor.partition("-")
        if not number.isdecimal() or len(cursor) > 40:
            raise FilesError("bad_cursor", "", "this is not a cursor", "Omit it to get one.")
        return int(number) if run == self._run and int(number) <= self._last_number else None

    def _entries_after(self, number: int, selection: Selection, page: Page) -> tuple[list[_Entry], int]:
        """Return the entries after `number`, and the number of the last entry examined."""
        entries: list[_Entry] = []
        budget = ByteBudget(page.max_bytes)
        latest: dict[str, str] = {}
        skipped = number - (self._last_number - len(self._entries))
        for entry in islice(self._entries, skipped, None):
            # After a creation or modification of a path, its later modifications on the same page are left out.
            is_repeated = entry.kind == "modified" and latest.get(entry.path, "deleted") != "deleted"
            if not is_repeated and selection.includes(entry.path):
                if len(entries) == page.limit or not budget.take(_OVERHEAD_BYTES, _display(entry.path)):
                    break
                entries.append(entry)
                latest[entry.path] = entry.kind
            number += 1
        return entries, number

    def _changes(self, entries: list[_Entry], number: int, overflow: bool = False) -> Changes:
        changes = tuple(Change(kind, _display(path), time_) for kind, path, time_ in entries)
        is_partial = any(tree.is_full for tree in self._trees)
        return Changes(
            changes, f"{self._run}-{number}", bool(entries) and number < self._last_number, overflow, is_partial
        )


def _display(path: str) -> str:
    return add_uri(display_name(path), partial(uri, path))


def _check_places(tree: Tree, rooted: RootedFiles, places: Sequence[Place] | None) -> None:
    """Check the places and all directories on the way to them, which may be new; None means everything."""
    if places is None:
        tree.check(None)
        return
    below = os.path.join(rooted.roots.path(tree.place), "")  # noqa: PTH118
    tree.check({path for place in places for path in trail_of(rooted, place) if path.startswith(below)})


def _key(index: int) -> tuple[str, int]:
    return "journal", index

"""Notifications about changes of watched places, with one operating system watch for all of them.

The watch is never on a file itself but on every directory on the way to it, from the root down and through links. So
it does not matter how a change is made: by a write, by a rename over the file, by deletion and creation, by a new or
replaced parent directory, or by a link that points elsewhere. A notice, the system's report of a change of a name on
the way, only causes a check, which decides whether there is a change to report (see `fingerprint` and `tree`).

No change is lost when the operating system watch is replaced: everything is checked again after each new one. Notices
may still get lost in a full system queue, or in watchfiles, which drops those that arrive while it delivers others.
So everything is checked again soon after each notice, and every few seconds, rarely enough to take at most a
twentieth of the time. If the system sends no notices, everything is checked every second.

A target on another machine's file system, for which there are no notices, is remote: a separate task checks it every
second, because that machine may not respond.
"""

import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio

from servers.common.files.rooted_files import RootedFiles
from servers.common.globs import Glob
from servers.common.notices import Notices
from shared.program.files.entries import Place

from ..errors import FilesError
from .fingerprint import WatchedPlace
from .pacing import Pace, Target, Threads, WatchedTarget, check_target
from .tree import EntryQuota, Event, Tree

T = TypeVar("T")

MAX_WATCHED = 10_000
"""Maximum number of targets watched at once."""

LISTING_PACE = Pace(quiet=0.1, longest=1.0, leading=False)
"""If many files are created one after another, the listing is checked once, when all of them are there."""

_SWEEP_SECONDS = 5.0
"""Seconds between checks of everything, since notices may get lost."""
_RECHECK_SECONDS = 0.25
"""Seconds from a notice to a check of everything, and from the addition of a target to its next check."""
_POLL_SECONDS = 1.0
"""Seconds between checks of everything if there are no notices."""
_GATHER_SECONDS, _MAX_GATHER_SECONDS = 0.02, 1.0
"""Minimum and maximum number of seconds in which new targets are gathered for one check."""

log = logging.getLogger("servers.filesystem")

Changed = Callable[[str], Awaitable[None]]
Callback = Callable[[], Awaitable[None]]
OnEvents = Callable[[list[Event]], Awaitable[None]]


class Watcher:
    """Calls `changed(key)` when the place of a watched key has changed. Run `run` in a task.

    Callbacks are awaited one after another and must not raise. `local` returns True if the system sends notices for a
    place. Targets are below the roots of `rooted`; the `rooted` of a method limits them to a part of these roots.
    """

    def __init__(
        self,
        rooted: RootedFiles,
        changed: Changed,
        local: Callable[[Place], bool] = lambda _: True,
        notices: Notices | None = None,
    ) -> None:
        self._rooted = rooted
        self._changed = changed
        self._local = local
        self._notices = notices or Notices()
        self.on_polling: Callable[[bool], None] = lambda _: None
        """Called when polling may have begun or ended, with True if some targets are checked every second. It must
        not block."""
        self._watched: dict[Hashable, WatchedTarget] = {}
        self._ended_targets: list[WatchedTarget] = []
        """Targets that are no longer watched, but may be in use by a check."""
        self._quota = EntryQuota()
        self._on_trail: defaultdict[str, list[WatchedTarget]] = defaultdict(list)
        """The targets that a notice about a path affects."""
        self._inside: defaultdict[str, list[WatchedTarget]] = defaultdict(list)
        """The targets that a notice about any entry of a directory affects."""
        self._directories: set[str] = set()
        """The directories whose notices were last requested."""
        self._is_stale = False
        """True if the set of directories to watch may have changed."""
        self._sweep_at = self._paused_until = 0.0
        """The time of the next check of all targets, and the time until which checks pause (`time.monotonic`)."""
        self._has_local_targets, self._has_remote_targets = anyio.Event(), anyio.Event()
        self._stop = threading.Event()
        self._threads = Threads()

    @property
    def is_polling(self) -> bool:
        """True if changes are detected by polling because the system sends no notices."""
        return self._notices.is_polling

    @property
    def health(self) -> dict[str, int | bool]:
        """The number of targets, the number that are polled, and True if the system sends no notices."""
        everything = self._watched.values()
        polled = len(everything) if self.is_polling else sum(watched.is_remote for watched in everything)
        return {"watched": len(everything), "polled": polled, "degraded": self.is_polling}

    async def watch(self, key: str, place: Place, rooted: RootedFiles | None = None) -> None:
        """Notify `key` of changes at `place` from now on. The place need not exist.

        Raises FilesError with code `outside_roots` for a link that leads out, and `too_many`.
        """
        if key in self._watched:
            return
        watched_place = await self._check_new_place(place, rooted)
        # Nothing is awaited from here until the caller counts the subscriber, so a concurrent end of the key's last
        # subscription comes entirely before or after both.
        self._add(key, watched_place, lambda: self._changed(key), Pace())

    async def watch_tree(
        self,
        key: Hashable,
        place: Place,
        patterns: Sequence[str],
        callback: OnEvents,
        rooted: RootedFiles | None = None,
        owner: str = "",
    ) -> Tree:
        """Call `callback` with changes below `place` that match one of the globs. The entries of the returned tree
        count towards the owner's share.

        Raises FilesError with code `bad_pattern`, and `too_many`.
        """
        tree = Tree(rooted or self._rooted, place, Glob(patterns), self._quota, owner)
        await self._check(tree)
        self._add(key, tree, lambda: callback(tree.take_events()), Pace())
        return tree

    def unwatch(self, key: Hashable) -> None:
        """Stop the notifications of `key`. The last key also stops the operating system watch; directories that only
        this key needed are watched until the next sweep."""
        watched = self._watched.pop(key, None)
        if watched is None:
            return
        self._ended_targets.append(watched)
        self._close_ended()
        if all(other.is_remote for other in self._watched.values()):
            self._mark_stale()

    def affected_keys(self, uri: str) -> list[str]:
        """Return the keys whose targets are affected by a write, a creation or a removal at this `file:` URI: the
        entry itself, the entries in it, and its parent directory.
        """
        above, below = uri.rpartition("/")[0], f"{uri}/"
        watched_uris = [(key, key[key.find("file:") :]) for key in self._watched if isinstance(key, str)]
        return [key for key, watched in watched_uris if watched in (uri, above) or watched.startswith(below)]

    async def run_in_thread(self, place: Place, function: Callable[..., T], *arguments: Any) -> T:
        """Return the result of a function that blocks while the place's file system does not respond."""
        result: T = await self._threads.run(function, *arguments, remote=not self._local(place))
        return result

    async def watch_listing(self, key: str, callback: Callback, rooted: RootedFiles | None = None) -> None:
        """Call `callback` when an entry of a root directory appears, disappears or is renamed."""
        for index, path in enumerate((rooted or self._rooted).roots.paths):
            watched_place = await self._check_new_place(Place(index, (), str(path)), rooted)
            self._add((key, index), watched_place, callback, LISTING_PACE)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._run_remote)
            while True:
                await self._has_local_targets.wait()
                try:
                    await self._watch_local()
                finally:
                    self._directories = set()
                    self._notices.close()
                self._close_ended()
                if not self._targets(remote=False):
                    self._has_local_targets = anyio.Event()

    async def _run_remote(self) -> None:
        """Check the remote targets every second, until cancelled."""
        while True:
            await self._has_remote_targets.wait()
            started_at = time.monotonic()
            for watched in self._targets(remote=True):
                watched.schedule(started_at)
            await self._check_and_notify(remote=True)
            self._close_ended()
            if not self._targets(remote=True):
                self._has_remote_targets = anyio.Event()
                self.on_polling(self.is_polling)
            # Checks take at most a tenth of a slow file system's time.
            await anyio.sleep(max(_POLL_SECONDS, 10 * (time.monotonic() - started_at)))

    def _targets(self, remote: bool) -> list[WatchedTarget]:
        return [watched for watched in self._watched.values() if watched.is_remote == remote]

    async def _check_new_place(self, place: Place, rooted: RootedFiles | None) -> WatchedPlace:
        rooted = rooted or self._rooted
        watched_place = WatchedPlace(rooted, place)
        await self._check(watched_place)
        if watched_place.is_outside:
            raise rooted.roots.outside_error(place.path)
        return watched_place

    async def _check(self, target: Target) -> None:
        await self.run_in_thread(target.place, target.check, None)

    def _add(self, key: Hashable, target: Target, callback: Callback, pace: Pace) -> None:
        watched = WatchedTarget(target, callback, pace, is_remote=not self._local(target.place))
        if key in self._watched:
            # Another call has added the key first. Its target was checked earlier, so no change is missed.
            target.close()
            return
        if len(self._watched) >= MAX_WATCHED:
            target.close()
            reason = f"{MAX_WATCHED:,} entries are watched, which is the limit"
            raise FilesError("too_many", target.place.path, reason)
        if watched.is_remote and not self._has_remote_targets.is_set():
            log.info("change notifications do not cover every allowed directory: the others are polled every second")
        self._watched[key] = watched
        if watched.is_remote:
            self.on_polling(True)
        (self._has_remote_targets if watched.is_remote else self._has_local_targets).set()
        # Notices since the first check of the target did not reach it, so it is checked again.
        now = time.monotonic()
        if self._directories and self._directories.issuperset(_directories(target)):
            # A check of everything for each of thousands of files in one directory would take minutes.
            self._register(watched)
            watched.schedule(now + _RECHECK_SECONDS)
        else:
            watched.schedule(now)
            self._mark_stale()

    def _mark_stale(self) -> None:
        # If the set is already marked, it is computed before the next wait, or the current wait is ending.
        if not self._is_stale:
            self._is_stale = True
            self._stop.set()

    def _close_ended(self) -> None:
        # Targets whose check is in progress are closed later.
        busy = [watched for watched in self._ended_targets if watched.is_being_checked]
        for watched in self._ended_targets:
            if not watched.is_being_checked:
                watched.target.close()
        self._ended_targets = busy

    async def _watch_local(self) -> None:
        """Check the local targets after notices and sweeps, until there are none."""
        noticed: set[str] | None = None
        while self._targets(remote=False):
            # A new event before the check, so that later changes of the set of directories end the wait below.
            self._stop = threading.Event()
            started_at = time.monotonic()
            self._schedule_checks(noticed)
            await self._check_and_notify(remote=False)
            self._close_ended()
            if self._is_stale:
                self._is_stale = False
                had_no_watch = self._notices.has_no_watch
                self._on_trail, self._inside = defaultdict(list), defaultdict(list)
                for watched in self._targets(remote=False):
                    self._register(watched)
                self._directories = {*self._inside, *(os.path.dirname(path) for path in self._on_trail)}  # noqa: PTH120
                is_new = await self._threads.run(self._notices.arm, self._directories)
                self.on_polling(self.health["polled"] > 0)
                if is_new:
                    noticed = None
                    continue
                if self._notices.has_no_watch and not had_no_watch:
                    self._sweep_at = min(self._sweep_at, time.monotonic() + _POLL_SECONDS)
            due_times = [watched.due_at for watched in self._targets(remote=False) if watched.due_at is not None]
            now = time.monotonic()
            seconds, duration = max(0.0, min([*due_times, self._sweep_at]) - now), now - started_at
            noticed = await self._threads.wait(self._notices.wait, self._stop, seconds)
            if noticed:
                # A continuous stream of notices must not cause continuous checks of everything.
                self._sweep_at = min(self._sweep_at, max(time.monotonic() + _RECHECK_SECONDS, self._paused_until))
            if noticed is None and self._is_stale:
                # A client's many subscriptions cause one check of all of them, not one for each.
                await anyio.sleep(max(_GATHER_SECONDS, min(_MAX_GATHER_SECONDS, duration)))

    def _schedule_checks(self, noticed: set[str] | None) -> None:
        """Schedule the checks that are due."""
        now = time.monotonic()
        if noticed is None or now >= self._sweep_at:
            self._sweep_at = now + (_POLL_SECONDS if self._notices.has_no_watch else _SWEEP_SECONDS)
            # A directory may have been recreated under its old name, so it has to be watched again.
            self._is_stale = True
            for watched in self._targets(remote=False):
                watched.schedule(now)
        for path in noticed or ():
            self._is_stale |= self._notices.watches(path)
            for watched in self._on_trail.get(path, ()):
                watched.notice(now)
            for watched in self._inside.get(os.path.dirname(path), ()):  # noqa: PTH120
                watched.notice(now, path)

    async def _check_and_notify(self, remote: bool) -> None:
        """Check the targets that are due, and call back for those that have changed."""
        started_at = time.monotonic()
        targets = ((key, item) for key, item in self._watched.items() if item.is_remote == remote)
        due = [(key, item) for key, item in targets if item.due_at is not None and item.due_at <= started_at]
        if not due:
            return
        checks = [partial(check_target, watched.target, watched.begin_check(started_at)) for _, watched in due]
        for _, watched in due:
            watched.is_being_checked = True
        results = await self._threads.run(lambda: [check() for check in checks], remote=remote)
        for _, watched in due:
            watched.is_being_checked = False
        if not remote:
            now = time.monotonic()
            self._paused_until = max(self._paused_until, now + 19 * (now - started_at))
            self._sweep_at = max(self._sweep_at, self._paused_until)
        for (key, watched), (changed, has_new_paths) in zip(due, results, strict=True):
            self._is_stale |= has_new_paths and not remote
            # An earlier callback may have stopped this watch.
            if changed and self._watched.get(key) is watched:
                await watched.callback()

    def _register(self, watched: WatchedTarget) -> None:
        """Let notices about the paths of the target cause a check of it."""
        for path in watched.target.trail:
            self._on_trail[path].append(watched)
        for path in watched.target.directories:
            self._inside[path].append(watched)


def _directories(target: Target) -> set[str]:
    """Return the directories whose notices affect the target."""
    return {*target.directories, *(os.path.dirname(path) for path in target.trail)}  # noqa: PTH120

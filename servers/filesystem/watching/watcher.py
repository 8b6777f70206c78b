"""Telling when watched places change: one operating system watch for all of them.

Theory. What is watched is never a file but every directory on the way to it, from the root down and through links.
So it does not matter how a change comes about: a write, a rename over the file, deleting and making it again, a
directory above it appearing or being exchanged, a link pointing elsewhere. A notice about a name on the way is only a
reason to look; the look (see `sightings`) decides whether there is a change to tell.

Nothing is lost between watches: the first look is taken in `watch`, before anything else, and after every new
operating system watch all places are looked at again. A place is looked at every few seconds anyway.

Pace: the first notice is acted upon at once. After telling, the loop rests, and what happens meanwhile is told
together; so a file written all the time is told at a bounded rate, its last change included.
"""

import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
from anyio import to_thread

from servers.filesystem.access.beneath import Beneath
from servers.filesystem.access.roots import Place
from servers.filesystem.watching.notices import Notices
from servers.filesystem.watching.sightings import Sighting, look

PACE = 0.1
"""Seconds between two tellings."""

Changed = Callable[[str], Awaitable[None]]


@dataclass(slots=True)
class _Watched:
    place: Place
    last: Sighting
    fresh: bool = True
    """Not yet looked at since it was added; notices before that passed it by."""


class Watcher:
    """Calls `changed(key)` when the file behind a watched key changed. `run` it in a task.

    The callbacks are awaited one after the other and must not raise.
    """

    def __init__(self, beneath: Beneath, changed: Changed, pace: float = PACE) -> None:
        self._beneath = beneath
        self._changed = changed
        self._pace = pace
        self._listing_changed: Callable[[], Awaitable[None]] | None = None
        self._files: dict[str, _Watched] = {}
        self._listings: dict[str, _Watched] = {}
        self._notices = Notices()
        self._wanted = anyio.Event()
        self._stop = threading.Event()
        # Of its own, so that waiting here takes no thread from those who read files.
        self._threads = anyio.CapacityLimiter(4)

    @property
    def degraded(self) -> bool:
        """Whether changes are found by polling because the system gives no notices."""
        return self._notices.degraded

    async def watch(self, key: str, place: Place) -> None:
        """Tell changes at `place` from now on as `key`; nothing has to exist there. Raises nothing."""
        self._files[key] = _Watched(place, await self._look(place))
        self._set_changed()

    def unwatch(self, key: str) -> None:
        """Tell no more changes of `key`; the last one ends the operating system watch."""
        if self._files.pop(key, None) is not None:
            self._set_changed()

    async def watch_listing(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Call `callback` when an entry of a root directory appears, goes, or changes its name."""
        for index, path in enumerate(self._beneath.roots.paths):
            place = Place(index, (), str(path))
            self._listings[str(path)] = _Watched(place, await self._look(place))
        self._listing_changed = callback
        self._set_changed()

    def unwatch_listing(self) -> None:
        """Tell no more changes of the root directories."""
        self._listings.clear()
        self._set_changed()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await self._wanted.wait()
            try:
                await self._serve()
            finally:
                self._notices.close()
            if not self._anything():
                self._wanted = anyio.Event()

    async def _serve(self) -> None:
        noticed: set[str] | None = None
        while self._anything():
            # Made before looking, so that a change of the set from here on ends the wait below.
            self._stop = threading.Event()
            told = await self._tell(await self._look_again(noticed))
            if await to_thread.run_sync(self._notices.arm, self._directories(), limiter=self._threads):
                noticed = None
                continue
            if told:
                await anyio.sleep(self._pace)
            noticed = await self._wait()

    def _anything(self) -> bool:
        return bool(self._files or self._listings)

    def _set_changed(self) -> None:
        if self._anything():
            self._wanted.set()
        self._stop.set()

    async def _look(self, place: Place) -> Sighting:
        return await to_thread.run_sync(look, self._beneath, place, limiter=self._threads)

    async def _look_again(self, noticed: set[str] | None) -> list[_Watched]:
        """Those that changed, of the ones the notices concern (all of them for None)."""
        every = [*self._files.values(), *self._listings.values()]
        concerned = every if noticed is None else _concerned(every, noticed)
        before = [watched.last for watched in concerned]

        def look_at_all() -> list[Sighting]:
            return [look(self._beneath, watched.place, watched.last) for watched in concerned]

        after = await to_thread.run_sync(look_at_all, limiter=self._threads) if concerned else []
        for watched, sighting in zip(concerned, after, strict=True):
            watched.last, watched.fresh = sighting, False
        pairs = zip(concerned, before, after, strict=True)
        return [watched for watched, old, new in pairs if old.content != new.content]

    async def _tell(self, changed: list[_Watched]) -> bool:
        if not changed:
            return False
        ids = {id(watched) for watched in changed}
        for key in [key for key, watched in self._files.items() if id(watched) in ids]:
            # A callback before may have ended this one.
            if key in self._files:
                await self._changed(key)
        if self._listing_changed and any(id(watched) in ids for watched in self._listings.values()):
            await self._listing_changed()
        return True

    def _directories(self) -> set[str]:
        found: set[str] = set()
        for watched in (*self._files.values(), *self._listings.values()):
            found.update(os.path.dirname(path) for path in watched.last.trail)  # noqa: PTH120
            if watched.last.directory is not None:
                found.add(watched.last.directory)
        return found

    async def _wait(self) -> set[str] | None:
        stop = self._stop
        result: set[str] | None = None
        async with anyio.create_task_group() as group:
            # The thread cannot be cancelled, so a task that can be tells it to stop.
            group.start_soon(_stop_when_cancelled, stop)
            result = await to_thread.run_sync(self._notices.wait, stop, limiter=self._threads)
            group.cancel_scope.cancel()
        return result


async def _stop_when_cancelled(stop: threading.Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()


def _concerned(every: list[_Watched], noticed: set[str]) -> list[_Watched]:
    parents = {os.path.dirname(path) for path in noticed}  # noqa: PTH120
    return [w for w in every if w.fresh or w.last.directory in parents or not noticed.isdisjoint(w.last.trail)]

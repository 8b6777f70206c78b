"""Telling of changes while somebody wants to know: under which keys, and how soon. How a database is looked at, and
what says that it has changed, each engine knows.

The first change after a quiet time is told at once. What follows it closely is told once: when nothing more came for
a moment, and after a second at the latest.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

import anyio
from anyio import to_thread

from servers.common.notices import Notices, wait_in_thread

from .database import Named
from .errors import SqlError
from .uris import Target, Uris

LISTING = "listing"
"""The key under which the list of resources is watched."""
SWEEP_SECONDS = 1.0
"""A database is looked at so often, whether there are notices or not."""
_QUIET, _LONGEST = 0.1, 1.0
_AGAIN_SECONDS = 5.0
"""How often it is asked whether the directories are still the same ones, and whether there is a watch."""

Noticed = Callable[[Collection[str] | None], None]
"""Takes the paths that something happened to; None when it may have happened to any."""


def ignore(_: object) -> None:
    """Nobody wants to know."""


class Watched:
    """One database, and under which keys changes of it are told."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.scope = anyio.CancelScope()
        """Ends the looking."""
        self.keys: dict[str, str | None] = {}
        """Each key, with the table that it is about, its name as the engine compares names."""
        self._tell = tell
        self._noticed = anyio.Event()

    def notice(self) -> None:
        """Something has happened to the database."""
        self._noticed.set()

    async def _wait(self) -> None:
        """Waits for the next reason to look."""
        with anyio.move_on_after(SWEEP_SECONDS):
            await self._noticed.wait()
        self._noticed = anyio.Event()

    async def _settle(self) -> None:
        """Waits until the burst of changes is over."""
        end, again = time.monotonic() + _LONGEST, False
        while (left := end - time.monotonic()) > 0:
            with anyio.move_on_after(min(_QUIET, left)) as pause:
                await self._noticed.wait()
            if pause.cancelled_caught:
                break
            self._noticed, again = anyio.Event(), True
        if again:
            self._noticed.set()

    def _tell_all(self, keys: Collection[str]) -> None:
        for key in keys:
            # Its last subscription may have ended meanwhile.
            if key in self.keys:
                self._tell(key)


W = TypeVar("W", bound=Watched)


class DatabaseWatch(ABC, Generic[W]):
    """Calls `changed(key)` when what a key stands for has changed, and `listing()` when there are other tables. The
    callbacks must not wait."""

    def __init__(
        self, uris: Uris, databases: Iterable[Named], changed: Callable[[str], None], listing: Callable[[], None]
    ) -> None:
        self._uris = uris
        self._names = [database.name for database in databases]
        self._changed = changed
        self._listing = listing
        self._watched: dict[str, W] = {}
        self.on_polling: Callable[[bool], None] = ignore
        """Told whether what is watched is asked every second, for want of what would tell of changes, when that may
        have changed. It must not wait."""
        self.on_wrote: Callable[[str], None] = ignore
        """Told the key of a database that this server itself has changed. It must not wait."""

    @property
    @abstractmethod
    def health(self) -> Mapping[str, object]:
        """How much is watched, and by what."""

    async def begin(self, uri: str) -> str:
        """Tells changes of what `uri` names from now on; the key under which it does.

        That is a database, its schema, or a table, which need not be there yet. A row counts as its table. Raises
        SqlError `not_found` and `bad_database`.
        """
        whole = self._uris.parse(f"{uri}/schema")
        if whole is not None and whole.table is None:
            return await self._begin(whole.database, self._uris.format_database(whole.database), None)
        named = self._uris.parse(uri)
        if named is None:
            raise SqlError("not_found", "that is not the URI of a database")
        table = None if named.table is None else await self._find_table(named.database, named.table)
        return await self._begin(named.database, self._uris.format(Target(named.database, table)), table)

    async def begin_listing(self) -> None:
        """Tells changes of the list of resources from now on."""
        for name in self._names:
            await self._begin(name, LISTING, None)

    def end(self, key: str) -> None:
        """No longer. With its last key a database is looked at no more."""
        for name, watched in [*self._watched.items()]:
            watched.keys.pop(key, None)
            if not watched.keys:
                del self._watched[name]
                watched.scope.cancel()

    def hear(self, key: str) -> tuple[str, ...]:
        """Another replica tells of what has this key: its database is looked at here, and whoever watches it hears by
        that. Of what belongs to no database this gives the keys to tell of."""
        named = self._uris.parse(f"{key}/schema") or self._uris.parse(key)
        if named is None:
            return (key,)
        if named.database in self._watched:
            self._watched[named.database].notice()
        return ()

    @abstractmethod
    async def _begin(self, name: str, key: str, table: str | None) -> str:
        """Tells changes of a table of the database of that name, or of all of it, under `key`, which it gives back.
        Raises SqlError `bad_database`."""

    @abstractmethod
    async def _find_table(self, database: str, table: str) -> str:
        """The name of a table as the engine compares names. Raises SqlError `bad_database`."""

    def _tell(self, key: str) -> None:
        if key == LISTING:
            self._listing()
        else:
            self._changed(key)


async def watch_events(
    notices: Notices,
    directories: Collection[str],
    noticed: Noticed,
    armed: Callable[[Notices], None] = ignore,
) -> None:
    """Calls back until it is cancelled, for the first time when the watch has begun; then closes `notices`, which
    `armed` is given whenever a watch was asked for."""
    limiter = anyio.CapacityLimiter(1)
    try:
        while True:
            is_new = await to_thread.run_sync(notices.arm, directories, limiter=limiter)
            armed(notices)
            if is_new:
                noticed(None)
            paths = await wait_in_thread(notices.wait, _AGAIN_SECONDS, limiter)
            if paths is None or paths:
                noticed(paths)
    finally:
        notices.close()

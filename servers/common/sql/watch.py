"""Watches of databases, which report changes to subscribers.

This module contains the keys of subscriptions and the pace of reports. Each engine decides how to check a database
and what counts as a change. The first change after a quiet time is reported at once. Changes that follow closely are
reported together: when nothing more has changed for a moment, or after one second at the latest.
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
"""Seconds between checks of a database, with or without notices."""
_QUIET_SECONDS, _MAX_WAIT_SECONDS = 0.1, 1.0
"""Seconds without a change after which changes are reported, and the maximum wait for that."""
_RECHECK_SECONDS = 5.0
"""Seconds between checks that the directories are still the same and that there is a watch."""

OnNotice = Callable[[Collection[str] | None], None]
"""Receives the changed paths; None if any path may have changed."""


def ignore(_: object) -> None:
    """Do nothing."""


class WatchedDatabase:
    """One database, and the keys under which its changes are reported."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.scope = anyio.CancelScope()
        """Ends the watch of this database."""
        self.keys: dict[str, str | None] = {}
        """Each key with its table, in the form in which the engine compares names."""
        self._report = report
        self._noticed = anyio.Event()

    def notice(self) -> None:
        """Record that the database may have changed."""
        self._noticed.set()

    async def _wait(self) -> None:
        """Wait for the next reason to check the database."""
        with anyio.move_on_after(SWEEP_SECONDS):
            await self._noticed.wait()
        self._noticed = anyio.Event()

    async def _wait_until_quiet(self) -> None:
        """Wait until a burst of changes is over."""
        end, again = time.monotonic() + _MAX_WAIT_SECONDS, False
        while (remaining := end - time.monotonic()) > 0:
            with anyio.move_on_after(min(_QUIET_SECONDS, remaining)) as pause:
                await self._noticed.wait()
            if pause.cancelled_caught:
                break
            self._noticed, again = anyio.Event(), True
        if again:
            self._noticed.set()

    def _report_all(self, keys: Collection[str]) -> None:
        for key in keys:
            # Its last subscription may have ended in the meantime.
            if key in self.keys:
                self._report(key)


W = TypeVar("W", bound=WatchedDatabase)


class DatabaseWatch(ABC, Generic[W]):
    """Calls `changed(key)` when the target of a key has changed, and `listing()` when the set of tables has changed.

    The callbacks must not block.
    """

    def __init__(
        self, uris: Uris, databases: Iterable[Named], changed: Callable[[str], None], listing: Callable[[], None]
    ) -> None:
        self._uris = uris
        self._names = [database.name for database in databases]
        self._changed = changed
        self._listing = listing
        self._watched: dict[str, W] = {}
        self.on_polling: Callable[[bool], None] = ignore
        """Called when polling may have begun or ended, with True if databases are polled every second because there
        are no notices.

        It must not block.
        """
        self.on_wrote: Callable[[str], None] = ignore
        """Called with the key of a database that this server itself has changed. It must not block."""

    @property
    @abstractmethod
    def health(self) -> Mapping[str, object]:
        """The number of watched databases, and how they are watched."""

    async def begin(self, uri: str) -> str:
        """Report changes to the target of `uri` from now on, and return the key of these reports.

        The target is a database, its schema, or a table, which need not exist yet. A row counts as its table. Raises
        SqlError with code `not_found` and `bad_database`.
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
        """Report changes to the list of resources from now on."""
        for name in self._names:
            await self._begin(name, LISTING, None)

    def end(self, key: str) -> None:
        """Stop reporting a key. A database without keys is no longer watched."""
        for name, watched in [*self._watched.items()]:
            watched.keys.pop(key, None)
            if not watched.keys:
                del self._watched[name]
                watched.scope.cancel()

    def handle_remote_change(self, key: str) -> tuple[str, ...]:
        """Handle a change of `key` that another replica reports.

        If the key belongs to a watched database, check it and report the changes found. Return the keys to report
        that belong to no database.
        """
        named = self._uris.parse(f"{key}/schema") or self._uris.parse(key)
        if named is None:
            return (key,)
        if named.database in self._watched:
            self._watched[named.database].notice()
        return ()

    @abstractmethod
    async def _begin(self, name: str, key: str, table: str | None) -> str:
        """Report changes to a table, or to the whole database `name`, under `key`, and return the key.

        Raises SqlError with code `bad_database`.
        """

    @abstractmethod
    async def _find_table(self, database: str, table: str) -> str:
        """Return the name of a table in the form in which the engine compares names. Raises SqlError with code
        `bad_database`."""

    def _report(self, key: str) -> None:
        if key == LISTING:
            self._listing()
        else:
            self._changed(key)


async def watch_events(
    notices: Notices, directories: Collection[str], on_notice: OnNotice, on_watch: Callable[[Notices], None] = ignore
) -> None:
    """Call `on_notice` until cancelled, first when the watch has begun; then close `notices`.

    `on_watch` is called with `notices` whenever a watch was requested.
    """
    limiter = anyio.CapacityLimiter(1)
    try:
        while True:
            is_new = await to_thread.run_sync(notices.arm, directories, limiter=limiter)
            on_watch(notices)
            if is_new:
                on_notice(None)
            paths = await wait_in_thread(notices.wait, _RECHECK_SECONDS, limiter)
            if paths is None or paths:
                on_notice(paths)
    finally:
        notices.close()

"""Watches databases and reports changes to subscribers.

This module defines the subscription keys, under which changes are reported, and the pace of reports. Each engine
decides how to check a database and what counts as a change. The first change after a quiet time is reported at once.
Changes soon after it are reported together: when nothing has changed for a moment, or after one second at the latest.
A notice says that a database may have changed. It comes from the operating system or from the database.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

import anyio
from anyio import to_thread

from ..notices import Notices, wait_in_thread
from .database import Named
from .errors import SqlError
from .uris import Target, Uris

LISTING = "listing"
"""The key under which changes of the list of tables are reported."""
CHECK_SECONDS = 1.0
"""Seconds after which a database is checked even if there was no notice."""
_QUIET_SECONDS, _MAX_WAIT_SECONDS = 0.1, 1.0
"""Changes are reported when nothing has changed for the first number of seconds, or at the latest after the second
number."""
_RECHECK_SECONDS = 5.0
"""Seconds between checks whether the watch still exists and watches the directories that are now at the paths."""

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
        """For each subscription key, the name of its table, in the form in which the engine compares names; None if
        the key is for the whole database."""
        self._report = report
        self._noticed = anyio.Event()

    def notice(self) -> None:
        """Record that the database may have changed."""
        self._noticed.set()

    async def _wait(self) -> None:
        """Wait for the next reason to check the database."""
        with anyio.move_on_after(CHECK_SECONDS):
            await self._noticed.wait()
        self._noticed = anyio.Event()

    async def _wait_until_quiet(self) -> None:
        """Wait until a burst of changes is over."""
        end, changed_meanwhile = time.monotonic() + _MAX_WAIT_SECONDS, False
        while (remaining := end - time.monotonic()) > 0:
            with anyio.move_on_after(min(_QUIET_SECONDS, remaining)) as pause:
                await self._noticed.wait()
            if pause.cancelled_caught:
                break
            self._noticed, changed_meanwhile = anyio.Event(), True
        if changed_meanwhile:
            self._noticed.set()

    def _report_all(self, keys: Collection[str]) -> None:
        for key in keys:
            # The last subscription with this key may have ended during the check.
            if key in self.keys:
                self._report(key)


W = TypeVar("W", bound=WatchedDatabase)


class DatabaseWatch(ABC, Generic[W]):
    """Watches the databases of a server that have subscribers. It calls `target_changed(key)` when the target of a
    subscription key has changed, and `list_changed()` when the set of tables has changed. These must not block."""

    def __init__(
        self,
        uris: Uris,
        databases: Iterable[Named],
        target_changed: Callable[[str], None],
        list_changed: Callable[[], None],
    ) -> None:
        self._uris = uris
        self._names = [database.name for database in databases]
        self._target_changed = target_changed
        self._list_changed = list_changed
        self._watched: dict[str, W] = {}
        self.on_polling: Callable[[bool], None] = ignore
        """Called when polling may have begun or ended, with True if changes are only found by checks every second,
        because there are no notices. It must not block."""
        self.on_own_write: Callable[[str], None] = ignore
        """Called with the subscription key of a database after this program itself has changed the database. It must
        not block."""

    @property
    @abstractmethod
    def health(self) -> Mapping[str, object]:
        """The number of watched databases, and how they are watched."""

    async def begin(self, uri: str) -> str:
        """Report changes to the target of `uri` from now on, and return the subscription key.

        The target is a database, its schema, or a table, which need not exist yet. For the URI of a row, changes to
        its table are reported. Raises SqlError with code `not_found` or `bad_database`.
        """
        # `parse` does not know the URI of a whole database, so make it that of the schema.
        schema = self._uris.parse(f"{uri}/schema")
        if schema is not None and schema.table is None:
            return await self._begin(schema.database, self._uris.format_database(schema.database), None)
        target = self._uris.parse(uri)
        if target is None:
            raise SqlError("not_found", "that is not the URI of a database")
        table = None if target.table is None else await self._find_table(target.database, target.table)
        return await self._begin(target.database, self._uris.format(Target(target.database, table)), table)

    async def watch_table_list(self) -> None:
        """Report changes to the list of tables from now on."""
        for name in self._names:
            await self._begin(name, LISTING, None)

    def end(self, key: str) -> None:
        """Stop reporting changes under `key`. Stop watching databases that have no subscription keys anymore."""
        for name, watched in [*self._watched.items()]:
            watched.keys.pop(key, None)
            if not watched.keys:
                del self._watched[name]
                watched.scope.cancel()

    def handle_remote_change(self, key: str) -> tuple[str, ...]:
        """Handle a change that another replica reports under `key`.

        If the key belongs to a watched database, check that database and report what has changed. Return a tuple of
        the keys that the caller must report: `key` if it belongs to no database, such as that of insights.
        """
        target = self._uris.parse(f"{key}/schema") or self._uris.parse(key)
        if target is None:
            return (key,)
        if target.database in self._watched:
            self._watched[target.database].notice()
        return ()

    @abstractmethod
    async def _begin(self, name: str, key: str, table: str | None) -> str:
        """Report changes to a table, or to the whole database called `name`, under `key`, and return the key.

        Raises SqlError with code `bad_database`.
        """

    @abstractmethod
    async def _find_table(self, database: str, table: str) -> str:
        """Return the name of a table in the form in which the engine compares names. Raises SqlError with code
        `bad_database`."""

    def _report(self, key: str) -> None:
        if key == LISTING:
            self._list_changed()
        else:
            self._target_changed(key)


async def watch_events(
    notices: Notices, directories: Collection[str], on_notice: OnNotice, on_watch: Callable[[Notices], None] = ignore
) -> None:
    """Watch the directories until cancelled, and then close `notices`.

    Call `on_notice` for each notice, and with None when a new watch has begun. Call `on_watch` with `notices` after
    each check of the watch.
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

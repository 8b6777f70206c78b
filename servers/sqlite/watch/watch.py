"""Telling of changes while somebody wants to know: a task for each database, one watch of files for all.

A notice is only a reason to look. Where there are none, because watchfiles is missing or the system refuses, whoever
wants to know looks every now and then anyway.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from servers.sql.database import Databases
from servers.sql.errors import SqlError
from servers.sql.file_events import ignore, watch_events
from servers.sql.uris import Target
from servers.sqlite.engine.database import Database
from servers.sqlite.uris import URIS
from servers.sqlite.watch.watched_database import LISTING, UNSEEN, Watched, fold_name, read_fingerprint
from shared.kit.notices import Notices

_BESIDE = ("", "-wal", "-journal")
"""Endings of the names of the files that a commit writes to."""


class Watch:
    """Calls `changed(key)` when what a key stands for has changed, and `listing()` when there are other tables.

    Its tasks are among `tasks`. The callbacks must not wait.
    """

    def __init__(
        self,
        databases: Databases[Database],
        tasks: TaskGroup,
        changed: Callable[[str], None],
        listing: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._databases = databases
        self._tasks = tasks
        self._changed = changed
        self._listing = listing
        self._watched: dict[str, Watched] = {}
        self._hearing = anyio.CancelScope()
        self._names: dict[str, list[str]] = defaultdict(list)
        for database in databases:
            database.on_committed = partial(self._committed, database.name)
            for path in _list_files(database.path):
                self._names[path].append(database.name)
        self._directories = {str(Path(path).parent) for path in self._names}
        self._notices = Notices()
        self.on_polling: Callable[[bool], None] = ignore
        """Told whether what is watched is asked every second, for want of notices, when that may have changed. It
        must not wait."""
        self.on_wrote: Callable[[str], None] = ignore
        """Told the key of a database that this server itself has changed. It must not wait."""

    @property
    def health(self) -> dict[str, int | bool]:
        """How much is watched, and whether only by asking every second, because there are no notices."""
        watched = sum(len(one.keys) for one in self._watched.values())
        return {"watched": watched, "degraded": bool(self._watched) and self._notices.degraded}

    async def begin(self, uri: str) -> str:
        """Tells changes of what `uri` names from now on; the key under which it does.

        That is a database (`sqlite:///{db}`), its schema, or a table, which need not be there yet. A row counts as
        its table. Raises SqlError `not_found` and `bad_database`.
        """
        whole = URIS.parse(f"{uri}/schema")
        if whole is not None and whole.table is None:
            return await self._begin(whole.database, URIS.format(whole).removesuffix("/schema"), None)
        named = URIS.parse(uri)
        if named is None:
            raise SqlError("not_found", "that is no URI of a database")
        table = None if named.table is None else fold_name(named.table)
        return await self._begin(named.database, URIS.format(Target(named.database, table)), table)

    async def begin_listing(self) -> None:
        """Tells changes of the list of resources from now on."""
        for database in self._databases:
            await self._begin(database.name, LISTING, None)

    def end(self, key: str) -> None:
        """No longer. With its last key a database is asked no more; with the last of all no file is watched."""
        for name, watched in [*self._watched.items()]:
            watched.keys.pop(key, None)
            if not watched.keys:
                del self._watched[name]
                watched.scope.cancel()
        if not self._watched:
            self._hearing.cancel()

    def hear(self, key: str) -> tuple[str, ...]:
        """Another replica tells of what has this key: its database is looked at here, and whoever watches it hears by
        that. Of what belongs to no database this gives the keys to tell of."""
        named = URIS.parse(f"{key}/schema") or URIS.parse(key)
        if named is None:
            return (key,)
        if named.database in self._watched:
            self._watched[named.database].notice()
        return ()

    def _committed(self, database: str, tables: Collection[str], defines: bool) -> None:
        self._loop.call_soon_threadsafe(self._wrote, database, frozenset(tables), defines)

    def _wrote(self, database: str, tables: Collection[str], defines: bool) -> None:
        if not tables and not defines:
            return
        if database in self._watched:
            self._watched[database].wrote(tables, defines)
        self.on_wrote(URIS.format(Target(database)).removesuffix("/schema"))

    async def _begin(self, name: str, key: str, table: str | None) -> str:
        database = self._databases.get(name)
        watched = self._watched.get(name)
        if watched is None:
            fingerprint = await read_fingerprint(database) or UNSEEN
            # Somebody else may have been faster. What he saw is older, so he misses no change.
            watched = self._watched.get(name) or self._start(Watched(database, fingerprint, self._tell))
        watched.keys[key] = table
        return key

    def _start(self, watched: Watched) -> Watched:
        if not self._watched:
            # What ended before may still have a thread to wait for.
            self._hearing, self._notices = anyio.CancelScope(), Notices()
            self._tasks.start_soon(self._watch_events, self._hearing, self._notices)
        self._watched[watched.database.name] = watched
        self._tasks.start_soon(watched.run)
        return watched

    async def _watch_events(self, scope: anyio.CancelScope, notices: Notices) -> None:
        with scope:
            await watch_events(notices, self._directories, self._noticed, self._armed)

    def _armed(self, notices: Notices) -> None:
        self.on_polling(notices.degraded)

    def _noticed(self, paths: Collection[str] | None) -> None:
        names = self._watched if paths is None else {name for path in paths for name in self._names.get(path, ())}
        for name in names:
            if name in self._watched:
                self._watched[name].notice()

    def _tell(self, key: str) -> None:
        if key == LISTING:
            self._listing()
        else:
            self._changed(key)


def _list_files(path: Path) -> Iterator[str]:
    """The paths under which notices of a database come, with and without symbolic links."""
    for one in {path.absolute(), path.resolve()}:
        for ending in _BESIDE:
            yield f"{one}{ending}"

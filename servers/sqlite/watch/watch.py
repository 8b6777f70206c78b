"""Watches the databases of an SQLite server, with one task for each database that has subscribers, and one task for
the files of all databases.

The operating system sends notices of changed files (see `servers.common.notices`). A notice only causes a check of
the database. If there are none, because watchfiles is missing or the system refuses, each database is still checked
every second.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from servers.common.notices import Notices
from servers.common.sql.database import Databases
from servers.common.sql.watch import DatabaseWatch, watch_events

from ..dialect import SQLITE
from ..engine.database import Database
from .watched_database import UNSEEN, WatchedSqliteDatabase, fold_name, read_fingerprint

_FILE_SUFFIXES = ("", "-wal", "-journal")
"""For each file to which a commit writes, what its name adds to that of the database."""


class Watch(DatabaseWatch[WatchedSqliteDatabase]):
    """Watches databases, in tasks of the group `tasks`."""

    def __init__(
        self,
        databases: Databases[Database],
        tasks: TaskGroup,
        changed: Callable[[str], None],
        listing: Callable[[], None],
    ) -> None:
        super().__init__(SQLITE.uris, databases, changed, listing)
        self._loop = asyncio.get_running_loop()
        self._databases = databases
        self._tasks = tasks
        self._scope = anyio.CancelScope()
        self._names_by_file: dict[str, list[str]] = defaultdict(list)
        for database in databases:
            database.on_committed = partial(self._on_committed, database.name)
            # Depending on the system, notices contain the configured path or the resolved one.
            for path in {database.path.absolute(), database.path.resolve()}:
                for suffix in _FILE_SUFFIXES:
                    self._names_by_file[f"{path}{suffix}"].append(database.name)
        self._directories = {str(Path(path).parent) for path in self._names_by_file}
        self._notices = Notices()

    @property
    def health(self) -> dict[str, int | bool]:
        """The state of the watch for the health report.

        `watched`: number of subscription keys. `degraded`: True if the databases are only checked every second,
        because there are no notices.
        """
        watched = sum(len(watched_database.keys) for watched_database in self._watched.values())
        return {"watched": watched, "degraded": bool(self._watched) and self._notices.is_polling}

    def end(self, key: str) -> None:
        """End the subscription `key`. When no keys are left, stop watching the files as well."""
        super().end(key)
        if not self._watched:
            self._scope.cancel()

    def _on_committed(self, database: str, tables: Collection[str], changes_schema: bool) -> None:
        # This runs in the connection's thread.
        self._loop.call_soon_threadsafe(self._report_commit, database, frozenset(tables), changes_schema)

    def _report_commit(self, database: str, tables: Collection[str], changes_schema: bool) -> None:
        if not tables and not changes_schema:
            return
        if database in self._watched:
            self._watched[database].record_write(tables, changes_schema)
        self.on_own_write(self._uris.format_database(database))

    async def _begin(self, name: str, key: str, table: str | None) -> str:
        database = self._databases.get(name)
        fingerprint = UNSEEN if name in self._watched else await read_fingerprint(database) or UNSEEN
        # During the await, another call may have begun to watch this database. Its fingerprint is older, so no change
        # is missed.
        if name not in self._watched:
            if not self._watched:
                # Don't reuse the objects of an earlier watch: it may still be waiting for its thread to end.
                self._scope, self._notices = anyio.CancelScope(), Notices()
                self._tasks.start_soon(self._watch_events, self._scope, self._notices)
            self._watched[name] = WatchedSqliteDatabase(database, fingerprint, self._report)
            self._tasks.start_soon(self._watched[name].run)
        self._watched[name].keys[key] = table
        return key

    async def _find_table(self, database: str, table: str) -> str:
        return fold_name(table)

    async def _watch_events(self, scope: anyio.CancelScope, notices: Notices) -> None:
        with scope:
            await watch_events(
                notices, self._directories, self._on_notice, lambda notices: self.on_polling(notices.is_polling)
            )

    def _on_notice(self, paths: Collection[str] | None) -> None:
        names = (
            self._watched if paths is None else {name for path in paths for name in self._names_by_file.get(path, ())}
        )
        for name in names:
            if name in self._watched:
                self._watched[name].notice()

"""Watches the databases of a PostgreSQL server, with one task for each database that has subscribers."""

from collections.abc import Callable, Collection
from functools import partial

from anyio.abc import TaskGroup

from servers.common.sql.database import Databases
from servers.common.sql.uris import Target
from servers.common.sql.watch import LISTING, DatabaseWatch

from ..commits import Commit
from ..dialect import POSTGRES
from .watched_database import Source, WatchedPostgresDatabase


class Watch(DatabaseWatch[WatchedPostgresDatabase]):
    """Watches databases, in tasks of the group `tasks`, and creates triggers in the databases named in `triggers`."""

    def __init__(
        self,
        databases: Databases[Source],
        tasks: TaskGroup,
        changed: Callable[[str], None],
        listing: Callable[[], None],
        *,
        triggers: Collection[str] = (),
    ) -> None:
        super().__init__(POSTGRES.uris, databases, changed, listing)
        self._databases = databases
        self._tasks = tasks
        self._triggers = triggers
        for database in databases:
            database.on_committed = partial(self._on_committed, database.name)

    @property
    def health(self) -> dict[str, int | bool | str]:
        """The state of the watch for the health report.

        `watched`: number of subscription keys. `rows`: "triggers" if triggers report the changes of all watched
        tables, else "polling". `degraded`: True if a watched database can't be queried.
        """
        return {
            "watched": sum(len(watched.keys) for watched in self._watched.values()),
            "rows": "triggers" if self._watched and not self._lacks_triggers(self._watched) else "polling",
            "degraded": any(watched.is_unreachable for watched in self._watched.values()),
        }

    def _on_committed(self, database: str, commit: Commit) -> None:
        if not commit.tables and not commit.schema_changed:
            return
        if database in self._watched:
            self._watched[database].on_commit(commit)
        self.on_own_write(self._uris.format_database(database))

    async def _begin(self, name: str, key: str, table: str | None) -> str:
        watched: WatchedPostgresDatabase | None = None
        # While `begin` waits, the end of the last other subscription may end this watch: then begin with a new one.
        while watched is None or self._watched.get(name) is not watched:
            watched = self._watched.get(name) or self._watch(name)
            await watched.begin(key, table)
        return key

    def _watch(self, name: str) -> WatchedPostgresDatabase:
        schema_keys = {LISTING, self._uris.format(Target(name))}
        watched = WatchedPostgresDatabase(
            self._databases.get(name), schema_keys, self._report, name in self._triggers
        )
        watched.on_mode_changed = lambda: self.on_polling(self._lacks_triggers(self._triggers))
        self._watched[name] = watched
        self._tasks.start_soon(watched.run)
        return watched

    async def _find_table(self, database: str, table: str) -> str:
        return await self._databases.get(database).find_name(table)

    def _lacks_triggers(self, names: Collection[str]) -> bool:
        """Return True if a watched table in one of these databases has no trigger that reports changed rows."""
        return not all(self._watched[name].uses_triggers for name in names if name in self._watched)

"""Telling of changes while somebody wants to know: a task for each database that is watched."""

from collections.abc import Callable, Collection
from functools import partial

from anyio.abc import TaskGroup

from servers.postgres.commits import Commit
from servers.postgres.uris import URIS
from servers.postgres.watch.watched_database import LISTING, Source, Watched
from servers.sql.database import Databases
from servers.sql.errors import SqlError
from servers.sql.uris import Target


class Watch:
    """Calls `changed(key)` when what a key stands for has changed, and `listing()` when there are other tables.

    Its tasks are among `tasks`. The callbacks must not wait. With `triggers` it makes those in the databases that may
    be changed.
    """

    def __init__(
        self,
        databases: Databases[Source],
        tasks: TaskGroup,
        changed: Callable[[str], None],
        listing: Callable[[], None],
        *,
        triggers: Collection[str] = (),
    ) -> None:
        self._databases = databases
        self._tasks = tasks
        self._changed = changed
        self._listing = listing
        self._triggers = triggers
        self._watched: dict[str, Watched] = {}
        for database in databases:
            database.on_committed = partial(self._committed, database.name)
        self.on_polling: Callable[[bool], None] = _ignore
        """Told whether some of what is watched is asked every second, though there should be triggers, when that may
        have changed. It must not wait."""
        self.on_wrote: Callable[[str], None] = _ignore
        """Told the key of a database that this server itself has changed. It must not wait."""

    @property
    def health(self) -> dict[str, int | bool | str]:
        """How much is watched; whether `rows` of all tables are told of by "triggers", or of some only by "polling";
        and whether a database that is watched can't be asked."""
        return {
            "watched": sum(len(one.keys) for one in self._watched.values()),
            "rows": "triggers" if self._watched and not self._lacks_triggers(self._watched) else "polling",
            "degraded": any(one.away for one in self._watched.values()),
        }

    async def begin(self, uri: str) -> str:
        """Tells changes of what `uri` names from now on; the key under which it does.

        That is a database (`postgres:///{db}`), its schema, or a table, which need not be there yet. A row counts as
        its table. Raises SqlError `not_found` and `bad_database`.
        """
        whole = URIS.parse(f"{uri}/schema")
        if whole is not None and whole.table is None:
            return await self._begin(whole.database, _format_database(whole.database), None)
        named = URIS.parse(uri)
        if named is None:
            raise SqlError("not_found", "that is no URI of a database")
        if named.table is None:
            return await self._begin(named.database, URIS.format(Target(named.database)), None)
        table = await self._databases.get(named.database).find_name(named.table)
        return await self._begin(named.database, URIS.format(Target(named.database, table)), table)

    async def begin_listing(self) -> None:
        """Tells changes of the list of resources from now on."""
        for database in self._databases:
            await self._begin(database.name, LISTING, None)

    def end(self, key: str) -> None:
        """No longer. With its last key a database is asked no more."""
        for name, watched in [*self._watched.items()]:
            watched.keys.pop(key, None)
            if not watched.keys:
                del self._watched[name]
                watched.scope.cancel()

    def hear(self, key: str) -> tuple[str, ...]:
        """Another replica tells of what has this key: its database is looked at here, and whoever watches it hears by
        that. Of what belongs to no database this gives the keys to tell of."""
        named = URIS.parse(f"{key}/schema") or URIS.parse(key)
        if named is None:
            return (key,)
        if named.database in self._watched:
            self._watched[named.database].notice()
        return ()

    def _committed(self, database: str, commit: Commit) -> None:
        if not commit.tables and not commit.defined:
            return
        if database in self._watched:
            self._watched[database].wrote(commit)
        self.on_wrote(_format_database(database))

    async def _begin(self, name: str, key: str, table: str | None) -> str:
        watched = self._watched.get(name) or self._start(self._databases.get(name))
        await watched.begin(key, table)
        return key

    def _start(self, database: Source) -> Watched:
        of_schema = {LISTING, URIS.format(Target(database.name))}
        watched = Watched(database, of_schema, self._tell, database.name in self._triggers)
        watched.on_ways = self._tell_ways
        self._watched[database.name] = watched
        self._tasks.start_soon(watched.run)
        return watched

    def _tell_ways(self) -> None:
        self.on_polling(self._lacks_triggers(self._triggers))

    def _lacks_triggers(self, names: Collection[str]) -> bool:
        """Whether rows of what is watched in these databases are not all told of by triggers."""
        return not all(self._watched[name].by_triggers for name in names if name in self._watched)

    def _tell(self, key: str) -> None:
        if key == LISTING:
            self._listing()
        else:
            self._changed(key)


def _format_database(name: str) -> str:
    return URIS.format(Target(name)).removesuffix("/schema")


def _ignore(_: object) -> None:
    """Nobody wants to know."""

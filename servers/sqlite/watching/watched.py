"""One database that is watched: when to look at it, and whom to tell of what.

A notice, and the passing of a second, are only reasons to look. Whether somebody else committed something is what
`data_version` says on the connection of our own writer, which does not count what that wrote: what we write is told
by who wrote it (`wrote`), and by nobody again.

Which tables another process changed SQLite does not say, and no fingerprint that is cheap sees an UPDATE. So all that
are watched are told of; of the schema only where `schema_version` differs. Of our own writes the tables are known.
A view, or a virtual table, may show any table, so it counts as changed with each of them.

The first change after a quiet time is told at once. What follows it closely is told once: when nothing more came for
a moment, and after a second at the latest.
"""

import time
from collections.abc import Callable, Collection

import anyio

from servers.sqlite.engine.database import Database
from servers.sqlite.uris import Target, uri_of
from servers.sqlite.watching.sights import Sight, folded, look

__all__ = ["LISTING", "Watched"]

LISTING = "listing"
"""The key under which the list of resources is watched."""

_QUIET, _LONGEST = 0.1, 1.0
_SWEEP_SECONDS = 1.0


class Watched:
    """A database, and under which keys changes of it are told. `run` it in a task."""

    def __init__(self, database: Database, sight: Sight, tell: Callable[[str], None]) -> None:
        self.database = database
        self.scope = anyio.CancelScope()
        """Ends `run`."""
        self.keys: dict[str, str | None] = {}
        """Each key, with the table that it is about, its name folded."""
        self._of_schema = {LISTING, uri_of(Target(database.name))}
        self._sight = sight
        self._tell = tell
        self._wrote: set[str] = set()
        self._noticed = anyio.Event()

    def notice(self) -> None:
        """Something happened to the files of the database."""
        self._noticed.set()

    def wrote(self, tables: Collection[str], defines: bool) -> None:
        """We changed these tables, and the schema where it `defines`."""
        changed = {folded(table) for table in tables}
        self._wrote |= {key for key, table in self.keys.items() if self._is_of(key, table, changed, defines)}
        self._noticed.set()

    async def run(self) -> None:
        """Looks and tells until it is cancelled."""
        with self.scope:
            while True:
                with anyio.move_on_after(_SWEEP_SECONDS):
                    await self._noticed.wait()
                self._noticed = anyio.Event()
                wrote, self._wrote = self._wrote, set()
                self._tell_all(wrote)
                found = await self._found() - wrote
                self._tell_all(found)
                if wrote or found:
                    await self._rest()

    def _is_of(self, key: str, table: str | None, changed: Collection[str], defines: bool) -> bool:
        if key in self._of_schema or defines:
            return defines
        return table is None or table in changed or table not in self._sight.tables

    async def _found(self) -> set[str]:
        """The keys of what others changed since the last look."""
        before, seen = self._sight, await look(self.database)
        if seen is None:
            return set()
        self._sight = seen
        if seen.opening != before.opening:
            return set(self.keys)
        if seen.data_version == before.data_version:
            return set()
        of_schema = set() if seen.schema_version != before.schema_version else self._of_schema
        return self.keys.keys() - of_schema

    def _tell_all(self, keys: Collection[str]) -> None:
        for key in keys:
            # Its last subscription may have ended meanwhile.
            if key in self.keys:
                self._tell(key)

    async def _rest(self) -> None:
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

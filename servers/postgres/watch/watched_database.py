"""One database of which changes are told: what was seen of it, when to look at it again, and whom to tell of what.

It is looked at every second, with one connection that is open while somebody watches, and right after notices of
triggers, where there are some. A table that has them is told of by these alone: what PostgreSQL counts comes later,
and would tell of the same change again. What we write is told by who wrote it (`wrote`), and by nobody again. After a
time in which the database could not be asked, all is told once.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import Protocol

import anyio

from servers.common.sql import watch
from servers.common.sql.errors import SqlError
from servers.postgres.commits import Commit, Committed
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.link import Ask, Link
from servers.postgres.watch.notifications import Notice, hear, listen, make_trigger
from servers.postgres.watch.polling import Part, Seen, look

_PATIENCE = 1.0
"""Seconds. What is known already must not wait long to be told."""
_LISTENING = 3 * watch.SWEEP_SECONDS
"""Seconds in which whoever listens should have noticed that the database is back."""
_LONG = 30.0
"""Seconds. A look takes some milliseconds, or more where there are thousands of tables."""
_TRIGGERED = ("r", "p")
"""Kinds of tables that can tell of all that changes them."""
_HOLLOW = ("v",)
"""Kinds that have no rows of their own."""
_NOTHING = Seen({}, None, None)


class Source(Protocol):
    """A database to watch."""

    on_committed: Committed

    @property
    def name(self) -> str:
        """As clients call it."""

    async def connect(self) -> Link:
        """A connection for us alone, to be closed by us. Raises SqlError."""

    async def find_name(self, table: str) -> str:
        """How PostgreSQL writes the name of what a client calls so, or the same where there is no such table."""


class Watched(watch.Watched):
    """A database, and under which keys changes of it are told. `run` it in a task."""

    def __init__(
        self, source: Source, of_schema: Collection[str], tell: Callable[[str], None], triggers: bool
    ) -> None:
        super().__init__(tell)
        self.source = source
        self.away = False
        """Whether the database can't be asked."""
        self.on_ways: Callable[[], None] = lambda: None
        """Told that `by_triggers` or `away` may have changed; must not wait."""
        self._of_schema = of_schema
        self._triggers = triggers
        self._listening = anyio.Event()
        self._missed = False
        """Whether notices may have come while nobody listened."""
        self._lock = anyio.Lock()
        self._link: Link | None = None
        self._seen = _NOTHING
        self._triggered: dict[int, bool] = {}
        """By oid whether a table has a trigger of ours; those that were not tried yet are missing."""
        self._wrote: set[str] = set()
        self._heard: list[Notice] = []
        self._backend = 0

    @property
    def by_triggers(self) -> bool:
        """Whether rows of all tables that are watched are told of by triggers."""
        return self._listening.is_set() and all(
            (parts := self._seen.tables.get(table, {}))
            and all(part.kind in _HOLLOW or self._triggered.get(oid) for oid, part in parts.items())
            for table in self.keys.values()
            if table is not None
        )

    def wrote(self, commit: Commit) -> None:
        """We have changed the database."""
        self._backend = commit.backend
        self._wrote |= {key for key, table in self.keys.items() if self._is_of(key, table, commit)}
        self.notice()

    async def begin(self, key: str, table: str | None) -> None:
        """Tells of what `table` is about under `key` from now on."""
        if key in self.keys:
            return
        with anyio.move_on_after(_LONG):
            await self._learn(key, table)
        self.keys[key] = table

    async def run(self) -> None:
        """Looks and tells until it is cancelled."""
        with self.scope:
            try:
                await self._watch()
            finally:
                self._close()

    async def _watch(self) -> None:
        async with anyio.create_task_group() as tasks:
            if self._triggers:
                tasks.start_soon(self._listen)
            await self._look_forever()

    async def _look_forever(self) -> None:
        while True:
            await self._wait()
            wrote, self._wrote = self._wrote, set()
            found: set[str] = set()
            with anyio.move_on_after(_PATIENCE if wrote else _LONG):
                found = await self._find_changes()
            self._tell_all(wrote | found)
            if await self._make_triggers():
                # What came before them was counted, but will not be compared any more.
                self._wrote |= found
                self.notice()
            if wrote or found:
                await self._settle()

    async def _listen(self) -> None:
        while True:
            with suppress(SqlError), closing(await self.source.connect()) as link:
                await listen(_limit(link))
                self._listening.set()
                self.notice()
                self.on_ways()
                async for notice in hear(link):
                    self._heard.append(notice)
                    self.notice()
            if self._listening.is_set():
                self._listening, self._missed = anyio.Event(), True
                self.on_ways()
            await anyio.sleep(watch.SWEEP_SECONDS)

    async def _learn(self, key: str, table: str | None) -> None:
        """Sees how it is now, once triggers tell of what comes. Where that can't be seen, it counts as changed when
        it can."""
        await self._wait_for_notices(_PATIENCE)
        self._missed = self._missed or (self._triggers and not self._listening.is_set())
        for _ in range(2):
            async with self._lock:
                seen = await self._look({key: table})
                if seen is None:
                    return
                self._seen = seen.beside(self._seen)
                self.keys[key] = table
            if not await self._make_triggers():
                break
        self.on_ways()

    async def _wait_for_notices(self, seconds: float) -> None:
        if self._triggers:
            with anyio.move_on_after(seconds):
                await self._listening.wait()

    async def _find_changes(self) -> set[str]:
        """The keys of what others have changed since the last look."""
        async with self._lock:
            keys = dict(self.keys)
            seen = await self._look(keys)
            if seen is None:
                return set()
            before, self._seen = self._seen, seen
        if self.away:
            # What comes until then is told of with the rest.
            await self._wait_for_notices(_LISTENING)
        heard, self._heard = self._heard, []
        if self.away or (self._missed and self._listening.is_set()):
            self.away = self._missed = False
            self.on_ways()
            return set(keys)
        told = {notice.table for notice in heard if notice.backend != self._backend}
        return {key for key, table in keys.items() if self._differs(key, table, before, told)}

    async def _look(self, keys: Mapping[str, str | None]) -> Seen | None:
        """What there is to see of the keys; None where that can't be seen now."""
        try:
            if self._link is None:
                self._link = await self.source.connect()
            async with self._link.transaction(Deadline(_LONG)):
                return await look(
                    _limit(self._link),
                    {table for table in keys.values() if table is not None},
                    everything=any(table is None and key not in self._of_schema for key, table in keys.items()),
                    schema=None in keys.values(),
                )
        except SqlError:
            self._close()
            self._triggered.clear()
            self.away = True
            self.on_ways()
            return None

    def _close(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = None

    async def _make_triggers(self) -> bool:
        """Makes those that are missing on what was seen; whether some were made."""
        made = False
        wanted = [oid for oid, part in self._seen.list_parts() if part.kind in _TRIGGERED] if self._triggers else []
        for oid in wanted:
            async with self._lock:
                if self._link is None or oid in self._triggered:
                    continue
                try:
                    trigger = await make_trigger(self._link, oid, Deadline(_LONG))
                except SqlError:
                    self._close()
                    continue
                self._triggered[oid] = trigger.is_there
                made = trigger.is_new or made
        return made

    def _differs(self, key: str, table: str | None, before: Seen, told: Collection[int]) -> bool:
        """Whether what the key is about is another now; `told` are the tables that notices came of."""
        seen = self._seen
        if key in self._of_schema:
            return seen.schema != before.schema
        if table is None:
            return bool(told) or (seen.everything, seen.schema) != (before.everything, before.schema)
        now, then = seen.tables.get(table, {}), before.tables.get(table, {})
        return not now.keys().isdisjoint(told) or self._list_facts(now) != self._list_facts(then)

    def _list_facts(self, parts: Mapping[int, Part]) -> dict[int, tuple[str | None, str]]:
        """What tells that a table changed."""
        hears = self._listening.is_set()
        return {
            oid: (part.shape, "" if hears and self._triggered.get(oid) else part.state) for oid, part in parts.items()
        }

    def _is_of(self, key: str, table: str | None, commit: Commit) -> bool:
        if key in self._of_schema or commit.defined:
            return commit.defined
        parts = self._seen.tables.get(table or "", {}).values()
        return table is None or any(part.name in commit.tables or part.kind == "f" for part in parts)


def _limit(link: Link) -> Ask:
    return partial(link.ask, deadline=Deadline(_LONG))

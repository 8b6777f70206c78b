"""One watched database: its last state, when to check it again, and the keys whose changes are reported.

It is checked every second, over one connection that is open while it has subscribers, and right after notices from
triggers, if any. Changes to a table with triggers are only reported by these, because PostgreSQL's counts come later
and would report the same change again. This server's own changes are reported by the writer (`on_commit`), once.
After a time in which the database could not be queried, all keys are reported once.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import Protocol

import anyio

from servers.common.sql import watch
from servers.common.sql.errors import SqlError
from servers.postgres.commits import Commit, CommitCallback
from servers.postgres.engine.deadline import Deadline
from servers.postgres.engine.link import Ask, Link
from servers.postgres.watch.notifications import Notice, listen, make_trigger, wait_for_notices
from servers.postgres.watch.polling import DatabaseState, Part, read_state

_QUICK_CHECK_SECONDS = 1.0
"""Time limit in seconds for a check while this server's own changes wait to be reported."""
_DETECTION_SECONDS = 3 * watch.CHECK_SECONDS
"""Seconds within which the listener should detect that the database is available again."""
_CHECK_SECONDS = 30.0
"""Time limit in seconds for a check, which takes some milliseconds, or more if there are thousands of tables."""
_TRIGGER_KINDS = ("r", "p")
"""Kinds of tables whose triggers detect all changes."""
_WITHOUT_ROWS = ("v",)
"""Kinds of tables without their own rows."""
_NOTHING = DatabaseState({}, None, None)


class Source(Protocol):
    """A database to watch."""

    on_committed: CommitCallback

    @property
    def name(self) -> str:
        """The name that clients use."""

    async def connect(self) -> Link:
        """Open a connection only for this watch, which closes it. Raises SqlError."""

    async def find_name(self, table: str) -> str:
        """Return the name of a table in the form in which PostgreSQL writes it, or `table` if there is no such
        table."""


class WatchedPostgresDatabase(watch.WatchedDatabase):
    """A database, and the keys under which its changes are reported. `run` it in a task."""

    def __init__(
        self, source: Source, schema_keys: Collection[str], report: Callable[[str], None], triggers: bool
    ) -> None:
        super().__init__(report)
        self.source = source
        self.is_unreachable = False
        """True if the database can't be queried."""
        self.on_mode_changed: Callable[[], None] = lambda: None
        """Called when `uses_triggers` or `is_unreachable` may have changed; must not block."""
        self._schema_keys = schema_keys
        self._triggers = triggers
        self._listening = anyio.Event()
        self._may_have_missed = False
        """True if notices may have been missed while the connection was closed."""
        self._lock = anyio.Lock()
        self._link: Link | None = None
        self._state = _NOTHING
        self._has_trigger: dict[int, bool] = {}
        """By oid, True if a table has this package's trigger. Tables that have not been tried yet are missing."""
        self._own_changes: set[str] = set()
        self._notices: list[Notice] = []
        self._backend = 0

    @property
    def uses_triggers(self) -> bool:
        """True if triggers report the rows of all watched tables."""
        return self._listening.is_set() and all(
            (parts := self._state.tables.get(table, {}))
            and all(part.kind in _WITHOUT_ROWS or self._has_trigger.get(oid) for oid, part in parts.items())
            for table in self.keys.values()
            if table is not None
        )

    def on_commit(self, commit: Commit) -> None:
        """Record this server's own changes to the database."""
        self._backend = commit.backend
        for key, table in self.keys.items():
            parts = self._state.tables.get(table or "", {}).values()
            if commit.schema_changed or (
                key not in self._schema_keys
                # PostgreSQL does not count the changes of foreign tables.
                and (table is None or any(part.name in commit.tables or part.kind == "f" for part in parts))
            ):
                self._own_changes.add(key)
        self.notice()

    async def begin(self, key: str, table: str | None) -> None:
        """Report changes of `table` under `key` from now on."""
        if key in self.keys:
            return
        with anyio.move_on_after(_CHECK_SECONDS):
            await self._read_first_state(key, table)
        self.keys[key] = table

    async def run(self) -> None:
        """Check and report until cancelled."""
        with self.scope:
            try:
                await self._watch()
            finally:
                self._close()

    async def _watch(self) -> None:
        async with anyio.create_task_group() as tasks:
            if self._triggers:
                tasks.start_soon(self._listen)
            while True:
                await self._wait()
                own_changes, self._own_changes = self._own_changes, set()
                changed: set[str] = set()
                with anyio.move_on_after(_QUICK_CHECK_SECONDS if own_changes else _CHECK_SECONDS):
                    changed = await self._find_changes()
                self._report_all(own_changes | changed)
                if await self._make_triggers():
                    # Earlier changes were counted, but will no longer be compared.
                    self._own_changes |= changed
                    self.notice()
                if own_changes or changed:
                    await self._wait_until_quiet()

    async def _listen(self) -> None:
        while True:
            with suppress(SqlError), closing(await self.source.connect()) as link:
                await listen(_bind_deadline(link))
                self._listening.set()
                self.notice()
                self.on_mode_changed()
                async for notice in wait_for_notices(link):
                    self._notices.append(notice)
                    self.notice()
            if self._listening.is_set():
                self._listening, self._may_have_missed = anyio.Event(), True
                self.on_mode_changed()
            await anyio.sleep(watch.CHECK_SECONDS)

    async def _read_first_state(self, key: str, table: str | None) -> None:
        """Read the current state of a key, once triggers report later changes.

        If it can't be read, the key counts as changed once it can be.
        """
        await self._wait_for_notices(_QUICK_CHECK_SECONDS)
        self._may_have_missed = self._may_have_missed or (self._triggers and not self._listening.is_set())
        for _ in range(2):
            async with self._lock:
                state = await self._read_state({key: table})
                if state is None:
                    return
                self._state = state.merge(self._state)
                self.keys[key] = table
            if not await self._make_triggers():
                break
        self.on_mode_changed()

    async def _wait_for_notices(self, seconds: float) -> None:
        if self._triggers:
            with anyio.move_on_after(seconds):
                await self._listening.wait()

    async def _find_changes(self) -> set[str]:
        """Return the keys that others have changed since the last check."""
        async with self._lock:
            keys = dict(self.keys)
            state = await self._read_state(keys)
            if state is None:
                return set()
            before, self._state = self._state, state
        if self.is_unreachable:
            # Changes up to that point are reported with the rest.
            await self._wait_for_notices(_DETECTION_SECONDS)
        notices, self._notices = self._notices, []
        if self.is_unreachable or (self._may_have_missed and self._listening.is_set()):
            self.is_unreachable = self._may_have_missed = False
            self.on_mode_changed()
            return set(keys)
        notified_tables = {notice.table for notice in notices if notice.backend != self._backend}
        return {key for key, table in keys.items() if self._has_changed(key, table, before, notified_tables)}

    async def _read_state(self, keys: Mapping[str, str | None]) -> DatabaseState | None:
        """Read the state of the keys; None if that is impossible now."""
        try:
            if self._link is None:
                self._link = await self.source.connect()
            async with self._link.transaction(Deadline(_CHECK_SECONDS)):
                return await read_state(
                    _bind_deadline(self._link),
                    {table for table in keys.values() if table is not None},
                    everything=any(table is None and key not in self._schema_keys for key, table in keys.items()),
                    schema=None in keys.values(),
                )
        except SqlError:
            self._close()
            self._has_trigger.clear()
            self.is_unreachable = True
            self.on_mode_changed()
            return None

    def _close(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = None

    async def _make_triggers(self) -> bool:
        """Create missing triggers on the tables in the last state. Return True if any were created."""
        has_created = False
        oids = (
            [oid for oid, part in self._state.list_parts() if part.kind in _TRIGGER_KINDS] if self._triggers else []
        )
        for oid in oids:
            async with self._lock:
                if self._link is None or oid in self._has_trigger:
                    continue
                try:
                    trigger = await make_trigger(self._link, oid, Deadline(_CHECK_SECONDS))
                except SqlError:
                    self._close()
                    continue
                self._has_trigger[oid] = trigger.exists
                has_created = trigger.is_new or has_created
        return has_created

    def _has_changed(
        self, key: str, table: str | None, before: DatabaseState, notified_tables: Collection[int]
    ) -> bool:
        """Return True if the target of the key has changed. Notices came from `notified_tables`."""
        state = self._state
        if key in self._schema_keys:
            return state.schema != before.schema
        if table is None:
            return bool(notified_tables) or (state.everything, state.schema) != (before.everything, before.schema)
        now, then = state.tables.get(table, {}), before.tables.get(table, {})
        return not now.keys().isdisjoint(notified_tables) or self._list_facts(now) != self._list_facts(then)

    def _list_facts(self, parts: Mapping[int, Part]) -> dict[int, tuple[str | None, str]]:
        """Return the values that differ after a change to a table."""
        is_listening = self._listening.is_set()
        return {
            oid: (part.shape, "" if is_listening and self._has_trigger.get(oid) else part.state)
            for oid, part in parts.items()
        }


def _bind_deadline(link: Link) -> Ask:
    return partial(link.ask, deadline=Deadline(_CHECK_SECONDS))

"""One watched database: its last state, when to check it again, and the subscription keys whose changes are reported.

The database is checked every second, and right after notifications from triggers. The checks use one connection,
which is open while the database has subscribers. If a table has a trigger, changes of its rows are only reported
because of the trigger: PostgreSQL's counts come later, and would report the same change again. Changes by this
program itself are reported once, because of `on_commit`. When the database can be queried again after a failure, all
keys are reported once.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import Protocol

import anyio

from servers.common.sql import watch
from servers.common.sql.errors import SqlError

from ..commits import Commit, CommitCallback
from ..engine.deadline import Deadline
from ..engine.link import Ask, Link
from .notifications import ChangeNotification, ensure_trigger, listen, wait_for_changes
from .polling import DatabaseState, Part, read_state

_QUICK_CHECK_SECONDS = 1.0
"""Maximum number of seconds for a check while changes by this program itself wait to be reported."""
_DETECTION_SECONDS = 3 * watch.CHECK_SECONDS
"""Maximum number of seconds to wait until the listener has detected that the database is available again."""
_CHECK_SECONDS = 30.0
"""Maximum number of seconds for a check. It takes some milliseconds, or more if there are thousands of tables."""
_TRIGGER_KINDS = ("r", "p")
"""Kinds of tables (`relkind`) that get a trigger."""
_KINDS_WITHOUT_ROWS = ("v",)
"""Kinds of tables (`relkind`) that have no rows of their own, so they need no trigger."""
_UNKNOWN = DatabaseState({}, None, None)


class Source(Protocol):
    """A database to watch."""

    on_committed: CommitCallback

    @property
    def name(self) -> str:
        """The name that clients use."""

    async def connect(self) -> Link:
        """Open a connection. The watch uses it alone, and closes it. Raises SqlError."""

    async def find_name(self, table: str) -> str:
        """Return the name of the table as PostgreSQL writes it, or `table` if there is no such table."""


class WatchedPostgresDatabase(watch.WatchedDatabase):
    """A database, and the subscription keys under which its changes are reported. `run` must run in a task."""

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
        """True if notifications may have been missed while the listener's connection was closed."""
        self._lock = anyio.Lock()
        self._link: Link | None = None
        self._state = _UNKNOWN
        self._has_trigger: dict[int, bool] = {}
        """For each table, by oid, True if it has the trigger; tables for which this is not known yet are missing."""
        self._own_changes: set[str] = set()
        self._notifications: list[ChangeNotification] = []
        self._backend = 0

    @property
    def uses_triggers(self) -> bool:
        """True if triggers report changed rows of all watched tables."""
        return self._listening.is_set() and all(
            (parts := self._state.tables.get(table, {}))
            and all(part.kind in _KINDS_WITHOUT_ROWS or self._has_trigger.get(oid) for oid, part in parts.items())
            for table in self.keys.values()
            if table is not None
        )

    def on_commit(self, commit: Commit) -> None:
        """Record that this program itself has committed changes, so that they are reported at the next check."""
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
                if await self._ensure_triggers():
                    # The counts of these tables will no longer be compared, and the trigger may have missed changes
                    # that they have just shown, so report those again.
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
                async for notification in wait_for_changes(link):
                    self._notifications.append(notification)
                    self.notice()
            if self._listening.is_set():
                self._listening, self._may_have_missed = anyio.Event(), True
                self.on_mode_changed()
            await anyio.sleep(watch.CHECK_SECONDS)

    async def _read_first_state(self, key: str, table: str | None) -> None:
        """Create triggers for the target of a key, and read the state with which later states are compared.

        If the database can't be queried now, the key is reported as changed as soon as it can be.
        """
        await self._wait_for_listener(_QUICK_CHECK_SECONDS)
        self._may_have_missed = self._may_have_missed or (self._triggers and not self._listening.is_set())
        for _ in range(2):
            async with self._lock:
                state = await self._read_state({key: table})
                if state is None:
                    return
                self._state = state.merge(self._state)
                self.keys[key] = table
            if not await self._ensure_triggers():
                break
        self.on_mode_changed()

    async def _wait_for_listener(self, max_wait: float) -> None:
        if self._triggers:
            with anyio.move_on_after(max_wait):
                await self._listening.wait()

    async def _find_changes(self) -> set[str]:
        """Return the keys that others have changed since the last check."""
        async with self._lock:
            keys = dict(self.keys)
            state = await self._read_state(keys)
            if state is None:
                return set()
            previous, self._state = self._state, state
        if self.is_unreachable:
            # All keys are reported below, so changes before the listener is ready are covered.
            await self._wait_for_listener(_DETECTION_SECONDS)
        notifications, self._notifications = self._notifications, []
        if self.is_unreachable or (self._may_have_missed and self._listening.is_set()):
            self.is_unreachable = self._may_have_missed = False
            self.on_mode_changed()
            return set(keys)
        notified_tables = {change.table for change in notifications if change.backend != self._backend}
        return {key for key, table in keys.items() if self._has_changed(key, table, previous, notified_tables)}

    async def _read_state(self, keys: Mapping[str, str | None]) -> DatabaseState | None:
        """Return the state of the targets of the keys; None if the database can't be queried now."""
        try:
            if self._link is None:
                self._link = await self.source.connect()
            async with self._link.transaction(Deadline(_CHECK_SECONDS)):
                return await read_state(
                    _bind_deadline(self._link),
                    {table for table in keys.values() if table is not None},
                    all_rows=any(table is None and key not in self._schema_keys for key, table in keys.items()),
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

    async def _ensure_triggers(self) -> bool:
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
                    trigger = await ensure_trigger(self._link, oid, Deadline(_CHECK_SECONDS))
                except SqlError:
                    self._close()
                    continue
                self._has_trigger[oid] = trigger.exists
                has_created = trigger.is_new or has_created
        return has_created

    def _has_changed(
        self, key: str, table: str | None, previous: DatabaseState, notified_tables: Collection[int]
    ) -> bool:
        """Return True if the target of the key has changed since the state `previous`, or a trigger has reported one
        of its tables (`notified_tables`)."""
        state = self._state
        if key in self._schema_keys:
            return state.schema != previous.schema
        if table is None:
            return bool(notified_tables) or (state.all_rows, state.schema) != (previous.all_rows, previous.schema)
        current, earlier = state.tables.get(table, {}), previous.tables.get(table, {})
        return not current.keys().isdisjoint(notified_tables) or self._list_digests(current) != self._list_digests(
            earlier
        )

    def _list_digests(self, parts: Mapping[int, Part]) -> dict[int, tuple[str | None, str]]:
        """Return the digests that differ after a change to a table, by oid of its parts. They don't cover changed
        rows that triggers report."""
        is_listening = self._listening.is_set()
        return {
            oid: (part.shape, "" if is_listening and self._has_trigger.get(oid) else part.state)
            for oid, part in parts.items()
        }


def _bind_deadline(link: Link) -> Ask:
    return partial(link.ask, deadline=Deadline(_CHECK_SECONDS))

"""Several servers as one at run time: which are open, what they declare, and what changes in each."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from shared.concurrency import TaskSet
from shared.extensions.apps import shows_apps
from shared.protocol.identity import LogMessage
from shared.protocol.session.events import Change
from shared.protocol.session.subscriptions import LISTS
from shared.protocol.types.resources import Resource
from shared.server.dispatch.connection import Connection
from shared.server.dispatch.context import Context
from shared.server.run import Run
from shared.server.running import Opening

from .description import audiences_of, capabilities_of, instructions_of, log_level_of
from .directory import Directory, Prefix
from .extension_methods import ExtensionMethods, methods_of
from .list_cache import LISTING_SECONDS, valid_entries
from .owners import Owners
from .paging import Pages
from .server import Member, Part
from .subscriptions import Subscriptions

log = logging.getLogger("shared.gateway")

_KINDS = {"tools": ("tools",), "prompts": ("prompts",), "resources": ("resourceTemplates",)}
"""The lists of a server to invalidate for each list that it announces as changed."""
PAUSE_SECONDS = 0.1
"""Seconds between two notifications of changed lists."""
_ALL = [kind for kinds in _KINDS.values() for kind in kinds]


class JoinedServers:
    """The state of the gateway: the servers behind it, and what it knows about them."""

    def __init__(
        self, opening: Opening, members: Sequence[Member], prefix: Prefix, foreign: Collection[str] = ()
    ) -> None:
        """`foreign` are the names of third-party servers. An entry that both kinds have belongs to the bundle's
        own."""
        parts = [Part(member, opening.settings.principals, is_foreign=member.name in foreign) for member in members]
        self.parts = sorted(parts, key=lambda part: part.is_foreign)
        self.directory = Directory(self.parts, prefix, self._announce_complete)
        self._host_directory = Directory(self.parts, prefix, self._announce_complete)
        self.owners = Owners(self.parts, self.directory, self.tools_of)
        self.extension_methods = ExtensionMethods(self.parts, self.directory, self.owners, self.tools_of)
        self.resources = Pages(self.parts, self._list_resources)
        self.subscriptions = Subscriptions(self.owners, opening.changes.resource)
        self._opening = opening
        self._own_rows = list(opening.features.methods)
        self._tasks = TaskSet(
            lambda error: log.error("background work of a server behind the gateway failed", exc_info=error)
        )
        self._is_wanted = False
        self._changed_lists: set[str] = set()
        self._pause_timer: asyncio.TimerHandle | None = None
        self._last_card: tuple[Any, ...] | None = None

    @asynccontextmanager
    async def watch_parts(self) -> AsyncIterator[None]:
        """Watch the servers during the block."""
        async with AsyncExitStack() as ending:
            ending.push_async_callback(self._tasks.stop)
            ending.callback(self._end_pause)
            for part in self.parts:
                presence = _Presence(self, part)
                ending.callback(presence.end)
                ending.callback(part.member.watch(presence.check))
                presence.check()
            self._describe()
            self._opening.greet(self.greet)
            yield

    def tools_of(self, context: Context[Any]) -> Directory:
        """Return the directory of tools that the client of `context` sees. To a client that shows pages, a server may
        list other tools, or more details, which no other client must see."""
        return self._host_directory if shows_apps(context) else self.directory

    async def want_resources(self) -> None:
        """Register the interest of a client in the list of resources, at each server and at those that open later."""
        self._is_wanted = True
        tasks = [self._tasks.start(_want_resources(part.running)) for part in self.parts if part.running is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=LISTING_SECONDS)

    def on_presence_change(self, part: Part) -> None:
        """Called when `part` has opened, has been replaced, or has closed."""
        self._forget(part, _ALL, is_new=True)
        if part.running is not None:
            self.owners.forget(part)
        self._describe()
        changes = self._opening.changes
        for notify in (changes.tools, changes.prompts, changes.resources):
            notify()
        if part.running is not None:
            self._tasks.start(self._renew(part))

    def handle_change(self, part: Part, change: Change) -> None:
        """Handle a change at `part`."""
        if change.uri is not None:
            base_uri = None if change.part is None else self.owners.shown_uri(part, change.part)
            self.subscriptions.handle_change(part, change.uri, base_uri)
        elif change.what in LISTS:
            self._forget(part, _KINDS[change.what])
            if change.what == "resources":
                self.owners.forget(part)
            self._changed_lists.add(change.what)
            if self._pause_timer is None:
                self._announce_lists()

    def _announce_lists(self) -> None:
        """Notify clients of changed lists, at once and then after each pause, since a server may announce changes
        endlessly."""
        self._pause_timer = None
        if not self._changed_lists:
            return
        self._pause_timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._announce_lists)
        # A third-party server with other tools may have been replaced by another.
        self._describe()
        lists, self._changed_lists = self._changed_lists, set()
        for what in LISTS:
            if what in lists:
                getattr(self._opening.changes, what)()

    def greet(self, link: Connection) -> None:
        """Greet a new client on behalf of all servers."""
        for part in self.parts:
            for greet in part.running.hooks.greeters if part.running is not None else ():
                greet(link)

    def announce(self, message: LogMessage) -> None:
        """Forward to all clients a log message from one server that concerns them all."""
        self._opening.changes.announce(message)

    def _list_resources(self, part: Part, page: dict[str, Any]) -> None:
        listed = valid_entries(Resource, page.get("resources") or ())
        self.owners.learn(part, listed)
        page["resources"] = [{**entry, "uri": self.owners.shown_uri(part, entry["uri"])} for entry in listed]

    def _forget(self, part: Part, whats: Sequence[str], *, is_new: bool = False) -> None:
        for directory in (self.directory, self._host_directory):
            directory.forget(part, whats, is_new=is_new)

    def _announce_complete(self, what: str) -> None:
        changes = self._opening.changes
        notify = {"tools": changes.tools, "prompts": changes.prompts, "resourceTemplates": changes.resources}
        notify[what]()

    def _end_pause(self) -> None:
        if self._pause_timer is not None:
            self._pause_timer.cancel()

    async def _renew(self, part: Part) -> None:
        running = part.running
        if running is not None and self._is_wanted:
            await _want_resources(running)
        await self.subscriptions.renew(part)

    def _describe(self) -> None:
        rows = [*self._own_rows, *methods_of(self.parts, self._own_rows)]
        declared = (capabilities_of(self.parts), instructions_of(self.parts))
        audiences, level = audiences_of(self.parts), log_level_of(self.parts)
        if self._last_card == (rows, declared, audiences, level):
            return
        self._last_card = (rows, declared, audiences, level)
        self._opening.features.methods[:] = rows
        self._opening.describe(*declared, audiences=audiences, log_level=level)


class _Presence:
    """Watches one of the servers, and its changes while it is open."""

    def __init__(self, joined: JoinedServers, part: Part) -> None:
        self._joined, self._part = joined, part
        self._running: Run[Any] | None = None

    def check(self) -> None:
        """Check whether it has opened or closed."""
        running = self._part.running
        if running is self._running:
            return
        self.end()
        if running is not None:
            running.changes.join(self)
        self._running = running
        self._joined.on_presence_change(self._part)

    def end(self) -> None:
        """Stop watching it."""
        if self._running is not None:
            self._running.changes.leave(self)
            self._running = None

    def on_change(self, change: Change) -> None:
        """Forward a change at it."""
        self._joined.handle_change(self._part, change)

    def announce(self, message: LogMessage) -> None:
        """Forward a message from it for all clients."""
        self._joined.announce(message)


async def _want_resources(running: Run[Any]) -> None:
    await running.changes.call_on_wanted()

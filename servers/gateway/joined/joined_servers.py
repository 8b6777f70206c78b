"""The state of an open gateway: which of its servers are open, and what they declare and announce."""

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
from .paging import PagedLists
from .server import JoinedServer, Member
from .subscriptions import Subscriptions

log = logging.getLogger("shared.gateway")

_LISTS_TO_INVALIDATE = {"tools": ("tools",), "prompts": ("prompts",), "resources": ("resourceTemplates",)}
"""The lists in the cache that become invalid when a server announces a change of its tools, prompts or resources."""
PAUSE_SECONDS = 0.1
"""Minimum number of seconds between two notifications of changed lists."""
_ALL_LISTS = [kind for kinds in _LISTS_TO_INVALIDATE.values() for kind in kinds]


class JoinedServers:
    """The joined servers, and what the gateway knows about them."""

    def __init__(
        self, opening: Opening, members: Sequence[Member], prefix: Prefix, third_party_names: Collection[str] = ()
    ) -> None:
        """`third_party_names` are the names of third-party servers. If a third-party server and one of the bundle's
        own have the same entry, the bundle's own server owns it."""
        servers = [
            JoinedServer(member, opening.settings.principals, is_third_party=member.name in third_party_names)
            for member in members
        ]
        self.servers = sorted(servers, key=lambda server: server.is_third_party)
        self.directory = Directory(self.servers, prefix, self._announce_list)
        self._apps_directory = Directory(self.servers, prefix, self._announce_list)
        self.owners = Owners(self.servers, self.directory, self.tool_directory_for)
        self.extension_methods = ExtensionMethods(self.servers, self.directory, self.owners, self.tool_directory_for)
        self.resources = PagedLists(self.servers, self._list_resources)
        self.subscriptions = Subscriptions(self.owners, opening.changes.resource)
        self._opening = opening
        self._own_methods = list(opening.features.methods)
        self._tasks = TaskSet(
            lambda error: log.error("background work of a server behind the gateway failed", exc_info=error)
        )
        self._are_resources_wanted = False
        self._changed_lists: set[str] = set()
        self._pause_timer: asyncio.TimerHandle | None = None
        self._last_description: tuple[Any, ...] | None = None

    @asynccontextmanager
    async def watch_servers(self) -> AsyncIterator[None]:
        """During the block, watch which servers are open, and what they announce."""
        async with AsyncExitStack() as ending:
            ending.push_async_callback(self._tasks.stop)
            ending.callback(self._end_pause)
            for server in self.servers:
                watcher = _ServerWatcher(self, server)
                ending.callback(watcher.end)
                ending.callback(server.member.watch(watcher.check))
                watcher.check()
            self._describe()
            self._opening.on_handshake(self.on_handshake)
            yield

    def tool_directory_for(self, context: Context[Any]) -> Directory:
        """Return the directory of tools that the client of `context` sees. To a client that supports MCP Apps, a
        server may list further tools, or more details, which other clients must not see."""
        return self._apps_directory if shows_apps(context) else self.directory

    async def want_resources(self) -> None:
        """Call the `on_wanted` hooks of all open servers, and of others when they open: a client is interested in the
        list of resources, so that servers have to watch for changes."""
        self._are_resources_wanted = True
        tasks = [
            self._tasks.start(_want_resources(server.running))
            for server in self.servers
            if server.running is not None
        ]
        if tasks:
            await asyncio.wait(tasks, timeout=LISTING_SECONDS)

    def on_server_replaced(self, server: JoinedServer) -> None:
        """Called when `server` has opened, has been replaced by a new run, or has closed."""
        self._forget(server, _ALL_LISTS, is_new=True)
        if server.running is not None:
            self.owners.forget(server)
        self._describe()
        changes = self._opening.changes
        for notify in (changes.tools, changes.prompts, changes.resources):
            notify()
        if server.running is not None:
            self._tasks.start(self._renew(server))

    def handle_change(self, server: JoinedServer, change: Change) -> None:
        """Handle a change of a list or resource that `server` announces."""
        if change.uri is not None:
            base_uri = None if change.part is None else self.owners.client_uri(server, change.part)
            self.subscriptions.handle_change(server, change.uri, base_uri)
        elif change.kind in LISTS:
            self._forget(server, _LISTS_TO_INVALIDATE[change.kind])
            if change.kind == "resources":
                self.owners.forget(server)
            self._changed_lists.add(change.kind)
            if self._pause_timer is None:
                self._announce_lists()

    def _announce_lists(self) -> None:
        """Notify clients of changed lists: at once, and then at most once per `PAUSE_SECONDS`, since a server may
        announce changes endlessly."""
        self._pause_timer = None
        if not self._changed_lists:
            return
        self._pause_timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._announce_lists)
        # A third-party server may have been replaced by one with other capabilities.
        self._describe()
        lists, self._changed_lists = self._changed_lists, set()
        for list_name in LISTS:
            if list_name in lists:
                getattr(self._opening.changes, list_name)()

    def on_handshake(self, link: Connection) -> None:
        """Pass a client that has completed the handshake to the callbacks of all servers."""
        for server in self.servers:
            for callback in server.running.hooks.handshake_callbacks if server.running is not None else ():
                callback(link)

    def announce(self, message: LogMessage) -> None:
        """Send a log message of one server to all clients."""
        self._opening.changes.announce(message)

    def _list_resources(self, server: JoinedServer, page: dict[str, Any]) -> None:
        listed = valid_entries(Resource, page.get("resources") or ())
        self.owners.learn(server, listed)
        page["resources"] = [{**entry, "uri": self.owners.client_uri(server, entry["uri"])} for entry in listed]

    def _forget(self, server: JoinedServer, list_names: Sequence[str], *, is_new: bool = False) -> None:
        for directory in (self.directory, self._apps_directory):
            directory.forget(server, list_names, is_new=is_new)

    def _announce_list(self, list_name: str) -> None:
        changes = self._opening.changes
        notify = {"tools": changes.tools, "prompts": changes.prompts, "resourceTemplates": changes.resources}
        notify[list_name]()

    def _end_pause(self) -> None:
        if self._pause_timer is not None:
            self._pause_timer.cancel()

    async def _renew(self, server: JoinedServer) -> None:
        run = server.running
        if run is not None and self._are_resources_wanted:
            await _want_resources(run)
        await self.subscriptions.renew(server)

    def _describe(self) -> None:
        rows = [*self._own_methods, *methods_of(self.servers, self._own_methods)]
        declared = (capabilities_of(self.servers), instructions_of(self.servers))
        audiences, level = audiences_of(self.servers), log_level_of(self.servers)
        if self._last_description == (rows, declared, audiences, level):
            return
        self._last_description = (rows, declared, audiences, level)
        self._opening.features.methods[:] = rows
        self._opening.describe(*declared, audiences=audiences, log_level=level)


class _ServerWatcher:
    """Watches whether one of the servers is open, and the changes that it announces."""

    def __init__(self, joined: JoinedServers, server: JoinedServer) -> None:
        self._joined, self._server = joined, server
        self._running: Run[Any] | None = None

    def check(self) -> None:
        """Check whether the server has opened or closed since the last call."""
        run = self._server.running
        if run is self._running:
            return
        self.end()
        if run is not None:
            run.changes.join(self)
        self._running = run
        self._joined.on_server_replaced(self._server)

    def end(self) -> None:
        """Stop listening to the changes of the server."""
        if self._running is not None:
            self._running.changes.leave(self)
            self._running = None

    def on_change(self, change: Change) -> None:
        """Pass on a change that the server announces."""
        self._joined.handle_change(self._server, change)

    def announce(self, message: LogMessage) -> None:
        """Pass on a log message of the server for all clients."""
        self._joined.announce(message)


async def _want_resources(run: Run[Any]) -> None:
    await run.changes.call_on_wanted()

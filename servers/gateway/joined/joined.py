"""Several servers as one, while it runs: who is there, what they say of themselves, and what changes at each."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from shared.concurrency import Crew
from shared.extensions.apps import shows_apps
from shared.protocol.identity import LogMessage
from shared.protocol.session.events import Change
from shared.protocol.session.subscriptions import LISTS
from shared.protocol.types.resources import Resource
from shared.server.dispatch.connection import Connection
from shared.server.dispatch.context import Context
from shared.server.run import Run
from shared.server.running import Opening

from .description import capabilities_of, instructions_of, log_level_of, spans_of
from .directory import Directory, Prefix
from .foreign import Foreign, rows_of
from .list_cache import LISTING_SECONDS, sound
from .owners import Owners
from .paging import Pages
from .part import Member, Part
from .subscriptions import Subscriptions

log = logging.getLogger("shared.gateway")

_KINDS = {"tools": ("tools",), "prompts": ("prompts",), "resources": ("resourceTemplates",)}
"""What is forgotten of a server whose list of this name has changed."""
PAUSE_SECONDS = 0.1
"""Between two times that clients are told that lists have changed."""
_ALL = [kind for kinds in _KINDS.values() for kind in kinds]


class Joined:
    """The state of the gateway: the servers behind it, and what is known of them."""

    def __init__(
        self, opening: Opening, members: Sequence[Member], prefix: Prefix, foreign: Collection[str] = ()
    ) -> None:
        """`foreign` are the names of those that are servers of others: what both have is ours."""
        parts = [Part(one, opening.settings.principals, is_foreign=one.name in foreign) for one in members]
        self.parts = sorted(parts, key=lambda part: part.is_foreign)
        self.directory = Directory(self.parts, prefix, self._returned)
        self._of_hosts = Directory(self.parts, prefix, self._returned)
        self.owners = Owners(self.parts, self.directory, self.tools_of)
        self.foreign = Foreign(self.parts, self.directory, self.owners, self.tools_of)
        self.resources = Pages(self.parts, self._list_resources)
        self.subscriptions = Subscriptions(self.owners, opening.changes.resource)
        self._opening = opening
        self._own_rows = list(opening.features.methods)
        self._tasks = Crew(_failed)
        self._is_wanted = False
        self._news: set[str] = set()
        self._pausing: asyncio.TimerHandle | None = None
        self._said: tuple[Any, ...] | None = None

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """As long as the block it hears of the servers."""
        async with AsyncExitStack() as ending:
            ending.push_async_callback(self._tasks.stop)
            ending.callback(self._end_pause)
            for part in self.parts:
                presence = _Presence(self, part)
                ending.callback(presence.end)
                ending.callback(part.member.watch(presence.look))
                presence.look()
            self._describe()
            self._opening.greet(self.greet)
            yield

    def tools_of(self, context: Context[Any]) -> Directory:
        """Where the tools stand as the client of `context` is told them: to one that shows pages a server may list
        others, or say more of them, and no other client is to see that."""
        return self._of_hosts if shows_apps(context) else self.directory

    async def want_resources(self) -> None:
        """A client takes an interest in the list of resources: so do we at each server, and at those that come."""
        self._is_wanted = True
        tasks = [self._tasks.start(_want(part.running)) for part in self.parts if part.running is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=LISTING_SECONDS)

    def came(self, part: Part) -> None:
        """`part` is open now, another one than before, or not open any more."""
        self._forget(part, _ALL, is_new=True)
        if part.running is not None:
            self.owners.forget(part)
        self._describe()
        changes = self._opening.changes
        for tell in (changes.tools, changes.prompts, changes.resources):
            tell()
        if part.running is not None:
            self._tasks.start(self._return(part))

    def changed(self, part: Part, change: Change) -> None:
        """Something has changed at `part`."""
        if change.uri is not None:
            of = None if change.part is None else self.owners.shown(part, change.part)
            self.subscriptions.changed(part, change.uri, of)
        elif change.what in LISTS:
            self._forget(part, _KINDS[change.what])
            if change.what == "resources":
                self.owners.forget(part)
            self._news.add(change.what)
            if self._pausing is None:
                self._tell_news()

    def _tell_news(self) -> None:
        """Tells of lists that have changed, at once and then after each pause: a server may tell without an end."""
        self._pausing = None
        if not self._news:
            return
        self._pausing = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._tell_news)
        # Who has other tools may be another server by now, where it is one of others.
        self._describe()
        news, self._news = self._news, set()
        for what in LISTS:
            if what in news:
                getattr(self._opening.changes, what)()

    def greet(self, link: Connection) -> None:
        """A client has shaken hands with all of them."""
        for part in self.parts:
            for greet in part.running.hooks.greeters if part.running is not None else ():
                greet(link)

    def announce(self, message: LogMessage) -> None:
        """One of the servers says what concerns everybody."""
        self._opening.changes.announce(message)

    def _list_resources(self, part: Part, page: dict[str, Any]) -> None:
        listed = sound(Resource, page.get("resources") or ())
        self.owners.learn(part, listed)
        page["resources"] = [{**entry, "uri": self.owners.shown(part, entry["uri"])} for entry in listed]

    def _forget(self, part: Part, whats: Sequence[str], *, is_new: bool = False) -> None:
        for directory in (self.directory, self._of_hosts):
            directory.forget(part, whats, is_new=is_new)

    def _returned(self, what: str) -> None:
        changes = self._opening.changes
        tell = {"tools": changes.tools, "prompts": changes.prompts, "resourceTemplates": changes.resources}
        tell[what]()

    def _end_pause(self) -> None:
        if self._pausing is not None:
            self._pausing.cancel()

    async def _return(self, part: Part) -> None:
        running = part.running
        if running is not None and self._is_wanted:
            await _want(running)
        await self.subscriptions.renew(part)

    def _describe(self) -> None:
        rows = [*self._own_rows, *rows_of(self.parts, self._own_rows)]
        said = (capabilities_of(self.parts), instructions_of(self.parts))
        spans, level = spans_of(self.parts), log_level_of(self.parts)
        if self._said == (rows, said, spans, level):
            return
        self._said = (rows, said, spans, level)
        self._opening.features.methods[:] = rows
        self._opening.describe(*said, spans=spans, log_level=level)


class _Presence:
    """Hears of one of the servers, and of what changes there while it is open."""

    def __init__(self, joined: Joined, part: Part) -> None:
        self._joined, self._part = joined, part
        self._running: Run[Any] | None = None

    def look(self) -> None:
        """It may be open by now, or not any more."""
        running = self._part.running
        if running is self._running:
            return
        self.end()
        if running is not None:
            running.changes.join(self)
        self._running = running
        self._joined.came(self._part)

    def end(self) -> None:
        """It is heard no longer."""
        if self._running is not None:
            self._running.changes.leave(self)
            self._running = None

    def changed(self, change: Change) -> None:
        """Something has changed there."""
        self._joined.changed(self._part, change)

    def announce(self, message: LogMessage) -> None:
        """Something holds there from now on."""
        self._joined.announce(message)


async def _want(running: Run[Any]) -> None:
    await running.changes.want_resources()


def _failed(error: BaseException) -> None:
    log.error("a server behind the gateway failed at what nobody waits for", exc_info=error)

"""Directory of the tools and prompts of all servers, under names that are unique.

    files: read, search      read
    web:   load, search  ──▶ files__search
                             load
                             web__search

A name that several servers use gets the name of the server as a prefix at each of them, or every name does if the
operator wants that. A name that begins with the name of another server belongs to that one, so the entry gets the
prefix of its own server too; and while a server is away, its names go to no other server.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import anyio

from shared.client.group.names import full_name, own_name, split_name
from shared.errors import DeclarationError
from shared.protocol.identity import declared
from shared.protocol.pagination import page
from shared.protocol.records import record
from shared.protocol.session.server import ServerSession
from shared.protocol.shaping import CachedResult
from shared.protocol.signing import Signer
from shared.protocol.types.tools import TaskSupport
from shared.protocol.uri_template import UriTemplate
from shared.server.dispatch.context import Context
from shared.text import plain

from .apps import page_of, shared_pages, with_page
from .list_cache import PROMPTS, TEMPLATES, TOOLS, Kind, Roll, Told
from .part import Part
from .uris import full_uri, split_uri

log = logging.getLogger("shared.gateway")

MAX_CLASHES = 1_000
"""The number of name clashes that are logged and remembered; a server may produce new ones without end."""

Prefix = Literal["auto", "always"]


@record
class Place:
    """The location of an entry: its server, and its name there."""

    part: Part
    own: str
    task: TaskSupport | None = None
    """The support for tasks that a tool declares; None for anything else."""


class Roster:
    """One list of all servers: its entries under the names that clients see, and the place of each."""

    def __init__(
        self, kind: Kind, lists: Sequence[tuple[Part, Told]], prefix: Prefix, gone: Sequence[Told] = ()
    ) -> None:
        """`gone` are the last lists of servers that are not available now."""
        self._kind = kind
        self._names = frozenset(part.name for part, _ in lists)
        self._parts = [part for part, _ in lists]
        self._fresh_ms = min((listing.fresh_ms for _, listing in lists), default=0)
        self._scope = "public" if all(listing.is_public for _, listing in lists) else "private"
        self._pages: dict[tuple[str | None, int], CachedResult] = {}
        self.places: dict[str, Place] = {}
        self.pages: dict[str, Part] = {}
        """The server of each page that a tool names."""
        self.templates: dict[Part, list[str]] = {}
        """The templates of a server that are published under another name than its own."""
        self.clashes: list[tuple[Part, str, str]] = []
        """The entries that got another name because their own would belong to another server: the server, and both
        names."""
        self._entries: list[dict[str, Any]] = []
        every = [*(listing.entries for _, listing in lists), *(listing.entries for listing in gone)]
        counts = Counter(entry[kind.key] for entries in every for entry in entries)
        shared = {name for name, count in counts.items() if prefix == "always" or count > 1}
        pages = shared_pages(every) if kind is TOOLS else set()
        for part, listing in lists:
            for entry in listing.entries:
                page = page_of(entry) if kind is TOOLS else None
                self._enter(part, entry if page is None else self._with_page(part, entry, page, pages), shared)

    def _with_page(self, part: Part, entry: dict[str, Any], own: str, shared: set[str]) -> dict[str, Any]:
        others = (other for other in self._parts if other is not part)
        is_others = split_uri(own)[0] in self._names or any(other.declares(own) for other in others)
        uri = full_uri(part.name, own) if own in shared or is_others else own
        self.pages[uri] = part
        if is_others:
            self.clashes.append((part, own, uri))
        return entry if uri == own else with_page(entry, own, uri)

    def _enter(self, part: Part, entry: dict[str, Any], shared: set[str]) -> None:
        own, key = entry[self._kind.key], self._kind.key
        name = own
        is_others = own in self.places or self.is_of_another(part, own)
        if key == "name" and (own in shared or is_others):
            name = full_name(part.name, own)
        elif is_others:
            name = full_uri(part.name, own)
            self.templates.setdefault(part, []).append(own)
        if is_others:
            self.clashes.append((part, own, name))
        if name not in self.places:
            self.places[name] = Place(part, own, _task_support_in(entry))
            self._entries.append(entry if name == own else {**entry, key: name})

    def is_of_another(self, part: Part, name: str) -> bool:
        """Return True if `name`, which `part` lists, begins with the name of another server."""
        server = split_uri(name)[0] if self._kind is TEMPLATES else server_of(name)
        return server in self._names and (self._kind is TEMPLATES or server != part.name)

    def page(self, cursor: str | None, size: int, signer: Signer) -> CachedResult:
        """Return the page that begins at `cursor`. Raises InvalidParams for a cursor that was not issued for this
        list."""
        result_page = self._pages.get((cursor, size))
        if result_page is None:
            what = self._kind.what
            shown, following = page(self._entries, cursor, name=what, size=size, signer=signer)
            result = {what: shown, "ttlMs": self._fresh_ms, "cacheScope": self._scope}
            if following is not None:
                result["nextCursor"] = following
            result_page = self._pages[cursor, size] = CachedResult(result)
        return result_page


class Directory:
    """The lists of all servers. `returned` is called with the name of a list that is complete again after a server
    failed to list its entries."""

    def __init__(self, parts: Iterable[Part], prefix: Prefix, returned: Callable[[str], None]) -> None:
        self._parts = tuple(parts)
        self._prefix = prefix
        self._returned = returned
        self._rolls = {kind.what: [Roll(part, kind) for part in self._parts] for kind in (TOOLS, PROMPTS, TEMPLATES)}
        self._rosters: dict[str, Roster] = {}
        self._rosters_of: WeakKeyDictionary[ServerSession, dict[str, Roster]] = WeakKeyDictionary()
        self._ages: Counter[str] = Counter()
        """The number of times that each list was invalidated at one of them."""
        self._built: dict[str, int] = {}
        """The age at which the roster was built."""
        self._clashes: set[tuple[str, str]] = set()
        self._incomplete: set[str] = set()
        """The lists to which a server has not contributed its entries."""

    def forget(self, part: Part, whats: Iterable[str], *, is_new: bool = False) -> None:
        """Invalidate these lists of `part`; `is_new` if it was opened again."""
        for what in whats:
            for roll in self._rolls[what]:
                if roll.part is part:
                    roll.forget(is_new=is_new)
            self._ages[what] += 1

    def is_stale(self, kind: Kind) -> bool:
        """Return True if the list may have changed since clients received it."""
        return self._has_changed(kind) or kind.what in self._incomplete

    def _has_changed(self, kind: Kind) -> bool:
        return self._built.get(kind.what) != self._ages[kind.what]

    async def page(self, kind: Kind, context: Context[Any], cursor: str | None) -> CachedResult:
        """Return the page that begins at `cursor`, as the client of `context` should see it. Raises InvalidParams for
        a cursor that was not issued for this list."""
        own = self._rosters_of.get(context.link.session, {}).get(kind.what)
        # A client that reads further pages gets the list that it began: it is not built again for each page.
        if cursor is None or own is None or self._has_changed(kind):
            own = await self.roster(kind, context)
        return own.page(cursor, context.running.server.page_size, context.running.signer)

    async def roster(self, kind: Kind, context: Context[Any]) -> Roster:
        """Return the list as the client of `context` should see it, built again if it may have changed."""
        what, age = kind.what, self._ages[kind.what]
        united, differs = self._rosters.get(what), any(part.differs_by_client for part in self._parts)
        if united is not None and not differs and not self.is_stale(kind):
            return united
        rolls = self._rolls[what]
        missing = [roll for roll in rolls if roll.is_missing]
        lists = list(zip(self._parts, await _told(rolls, context), strict=True))
        shown = zip(rolls, lists, strict=True)
        gone = [roll.last for roll, (_, listing) in shown if roll.is_gone and not listing.entries]
        united = Roster(kind, lists, self._prefix, gone)
        self._tell_of(united)
        # A build that began before a change may end after one that began behind it.
        if age >= self._built.get(what, 0):
            self._rosters[what], self._built[what] = united, age
        if all(roll.is_fresh or roll.part.running is None for roll in rolls):
            self._incomplete.discard(what)
        else:
            # The next request asks the server again, unless it was too slow a moment ago.
            self._incomplete.add(what)
        if differs and context.peer.lasts:
            self._rosters_of.setdefault(context.link.session, {})[what] = united
        if not all(roll.is_missing for roll in missing):
            self._returned(what)
        return united

    async def entries(self, kind: Kind, context: Context[Any]) -> list[tuple[Part, Told]]:
        """Return the list of each server, or its last one; servers that have announced a change are asked again."""
        if self._has_changed(kind):
            await self.roster(kind, context)
        return [(roll.part, roll.known(context)) for roll in self._rolls[kind.what]]

    def page_owner(self, uri: str, context: Context[Any]) -> Part | None:
        """Return the server of the page at `uri`, from the last list of tools of the client of `context`; None if
        none names it."""
        roster = self._told_last(TOOLS, context)
        return None if roster is None else roster.pages.get(uri)

    def has_full_template(self, part: Part, uri: str) -> bool:
        """Return True if `uri` matches a template of `part` that is published under another name than its own."""
        roster = self._rosters.get(TEMPLATES.what)
        return roster is not None and any(fits(template, uri) for template in roster.templates.get(part, ()))

    def known(self, kind: Kind, name: str, context: Context[Any]) -> Place | None:
        """Return the place of `name` in the last list of the client of `context`; None if it is not in it."""
        roster = self._told_last(kind, context)
        return None if roster is None else roster.places.get(name)

    def _told_last(self, kind: Kind, context: Context[Any]) -> Roster | None:
        own = self._rosters_of.get(context.link.session) if self._rosters_of else None
        return own.get(kind.what) if own is not None else self._rosters.get(kind.what)

    async def look_up(self, kind: Kind, name: str, context: Context[Any]) -> Place | None:
        """Return the place of `name` in the current list, or at a server that is not open and had the name; None if
        there is no such entry."""
        for roll in self._rolls[kind.what]:
            # Servers that declare `listChanged` announce new entries themselves.
            if not roll.part.has(kind.row.capability[0], "listChanged"):
                self.forget(roll.part, [kind.what])
        await self.roster(kind, context)
        place = self.known(kind, name, context)
        if place is None:
            place = self._full(kind, name, context) or self._closed(kind, name)
        return place

    def _full(self, kind: Kind, name: str, context: Context[Any]) -> Place | None:
        for roll in self._rolls[kind.what]:
            if server_of(name) == roll.part.name:
                entries = {entry[kind.key]: entry for entry in roll.known(context).entries}
                own = own_name(name, entries)
                return None if own is None else Place(roll.part, own, _task_support_in(entries[own]))
        return None

    def _closed(self, kind: Kind, name: str) -> Place | None:
        if server_of(name) in {part.name for part in self._parts}:
            return None
        for roll in self._rolls[kind.what]:
            if roll.had(name):
                return Place(roll.part, name)
        return None

    def _tell_of(self, roster: Roster) -> None:
        for part, own, name in roster.clashes:
            if (part.name, own) not in self._clashes and len(self._clashes) < MAX_CLASHES:
                self._clashes.add((part.name, own))
                text = "%s: its %s is known as %s, since it has the name of what belongs to another server"
                log.warning(text, part.name, plain(own[:200]), plain(name[:200]))


def server_of(name: str) -> str:
    """Return the server that the name of a tool or prompt belongs to; empty if the name has no prefix."""
    try:
        return split_name(name)[0]
    except ValueError:
        return ""


@lru_cache(1_000)
def _compiled(template: str) -> UriTemplate | None:
    try:
        return UriTemplate(template)
    except DeclarationError:
        return None


def fits(template: str, uri: str) -> bool:
    """Return True if `uri` matches `template`; False if that is not a valid template."""
    compiled = _compiled(template)
    return compiled is not None and compiled.match(uri) is not None


def _task_support_in(entry: dict[str, Any]) -> TaskSupport | None:
    support = declared(entry, ("execution", "taskSupport"))
    return support if support in get_args(TaskSupport) else None


async def _told(rolls: Sequence[Roll], context: Context[Any]) -> list[Told]:
    """Request the lists of all at the same time, so that a slow server does not delay those after it."""
    listings: dict[int, Told] = {}

    async def ask(number: int, roll: Roll) -> None:
        listings[number] = await roll.told(context)

    async with anyio.create_task_group() as tasks:
        for number, roll in enumerate(rolls):
            tasks.start_soon(ask, number, roll)
    return [listings[number] for number in range(len(rolls))]

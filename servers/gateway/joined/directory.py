"""Whose is what: the tools and prompts of all servers under names that are no other's.

    files: read, search      read
    web:   load, search  ──▶ files__search
                             load
                             web__search

What several have gets their names before it, for each of them, or everything does where the operator wants that.
A full name is understood wherever the server has such a thing, listed under it or not: so what a model has learned
still holds when another server comes or goes. What clients know already is not looked up anew: a server that takes
its time costs those that call others nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import anyio

from shared.client.group.names import SEPARATOR, full_name, own_name
from shared.protocol.identity import declared
from shared.protocol.pagination import page
from shared.protocol.records import record
from shared.protocol.session.server import ServerSession
from shared.protocol.shaping import CachedResult
from shared.protocol.signing import Signer
from shared.protocol.types.tools import TaskSupport
from shared.server.dispatch.context import Context

from .apps import page_of, shared_pages, with_page
from .list_cache import PROMPTS, TEMPLATES, TOOLS, Kind, Roll, Told
from .part import Part

Prefix = Literal["auto", "always"]


@record
class Place:
    """Where something is: at which server, and under which name there."""

    part: Part
    own: str
    task: TaskSupport | None = None
    """Whether it is listed as a tool that may run as a task."""


class Roster:
    """One list of all servers: its entries under the names that clients see, and the places of these."""

    def __init__(self, kind: Kind, lists: Sequence[tuple[Part, Told]], prefix: Prefix) -> None:
        self._kind = kind
        self._fresh_ms = min((told.fresh_ms for _, told in lists), default=0)
        self._scope = "public" if all(told.is_public for _, told in lists) else "private"
        self._pages: dict[tuple[str | None, int], CachedResult] = {}
        self.places: dict[str, Place] = {}
        self._entries: list[dict[str, Any]] = []
        counts = Counter(entry[kind.key] for _, told in lists for entry in told.entries)
        shared = {name for name, count in counts.items() if prefix == "always" or count > 1}
        pages = shared_pages(told.entries for _, told in lists) if kind is TOOLS else set()
        for part, told in lists:
            for entry in told.entries:
                page_uri = page_of(entry) if pages else None
                self._enter(part, with_page(entry, part, page_uri) if page_uri in pages else entry, shared)

    def _enter(self, part: Part, entry: dict[str, Any], shared: set[str]) -> None:
        own = entry[self._kind.key]
        name = own
        # What belongs to nobody in particular, as a template of URIs, stays what it is.
        if self._kind.key == "name" and (own in shared or own in self.places):
            name = full_name(part.name, own)
        if name not in self.places:
            self.places[name] = Place(part, own, _task_support_in(entry))
            self._entries.append(entry if name == own else {**entry, "name": name})
        elif self._kind.key != "name":
            self._entries.append(entry)

    def page(self, cursor: str | None, size: int, signer: Signer) -> CachedResult:
        """The page that begins at `cursor`. Raises InvalidParams for a cursor that was not issued for this list."""
        made = self._pages.get((cursor, size))
        if made is None:
            what = self._kind.what
            shown, following = page(self._entries, cursor, name=what, size=size, signer=signer)
            result = {what: shown, "ttlMs": self._fresh_ms, "cacheScope": self._scope}
            if following is not None:
                result["nextCursor"] = following
            made = self._pages[cursor, size] = CachedResult(result)
        return made


class Directory:
    """The lists of all servers. `returned` is told of a list that again has what one of them did not list before."""

    def __init__(self, parts: Iterable[Part], prefix: Prefix, returned: Callable[[str], None]) -> None:
        self._parts = tuple(parts)
        self._prefix = prefix
        self._returned = returned
        self._rolls = {kind.what: [Roll(part, kind) for part in self._parts] for kind in (TOOLS, PROMPTS, TEMPLATES)}
        self._rosters: dict[str, Roster] = {}
        self._rosters_of: WeakKeyDictionary[ServerSession, dict[str, Roster]] = WeakKeyDictionary()
        self._ages: Counter[str] = Counter()
        """How often each list was forgotten of one of them."""
        self._built: dict[str, int] = {}
        """The age that the roster was made at."""
        self._incomplete: set[str] = set()
        """The lists of which one has not told its own."""

    def forget(self, part: Part, whats: Iterable[str]) -> None:
        """These lists of `part` are others by now, or may be."""
        for what in whats:
            for roll in self._rolls[what]:
                if roll.part is part:
                    roll.forget()
            self._ages[what] += 1

    def is_stale(self, kind: Kind) -> bool:
        """Whether the list may have changed since clients were told it."""
        return self._has_changed(kind) or kind.what in self._incomplete

    def _has_changed(self, kind: Kind) -> bool:
        return self._built.get(kind.what) != self._ages[kind.what]

    async def page(self, kind: Kind, context: Context[Any], cursor: str | None) -> CachedResult:
        """The page of the list that begins at `cursor`, as the client of `context` is to see it. Raises InvalidParams
        for a cursor that was not issued for this list."""
        own = self._rosters_of.get(context.link.session, {}).get(kind.what)
        # Who reads on is shown the list that was begun: it is not made anew for each of its pages.
        if cursor is None or own is None or self._has_changed(kind):
            own = await self.roster(kind, context)
        return own.page(cursor, context.running.server.page_size, context.running.signer)

    async def roster(self, kind: Kind, context: Context[Any]) -> Roster:
        """The list as the client of `context` is to see it."""
        what, age = kind.what, self._ages[kind.what]
        made, differs = self._rosters.get(what), any(part.differs_by_client for part in self._parts)
        if made is not None and not differs and not self.is_stale(kind):
            return made
        rolls = self._rolls[what]
        missing = [roll for roll in rolls if roll.is_missing]
        made = Roster(kind, list(zip(self._parts, await _told(rolls, context), strict=True)), self._prefix)
        # One that began before a change may end after one that began behind it.
        if age >= self._built.get(what, 0):
            self._rosters[what], self._built[what] = made, age
        if all(roll.is_fresh or roll.part.running is None for roll in rolls):
            self._incomplete.discard(what)
        else:
            # Whoever asks next asks it again, as far as there is patience.
            self._incomplete.add(what)
        if differs and context.peer.lasts:
            self._rosters_of.setdefault(context.link.session, {})[what] = made
        if not all(roll.is_missing for roll in missing):
            self._returned(what)
        return made

    async def entries(self, kind: Kind, context: Context[Any]) -> list[tuple[Part, Told]]:
        """What each server lists, or did the last time; who has told of a change is asked anew."""
        if self._has_changed(kind):
            await self.roster(kind, context)
        return [(roll.part, roll.known(context)) for roll in self._rolls[kind.what]]

    def known(self, kind: Kind, name: str, context: Context[Any]) -> Place | None:
        """The place of `name` in the list that the client of `context` was told last; None where it is not in it."""
        own = self._rosters_of.get(context.link.session) if self._rosters_of else None
        roster = own.get(kind.what) if own is not None else self._rosters.get(kind.what)
        return None if roster is None else roster.places.get(name)

    async def look_up(self, kind: Kind, name: str, context: Context[Any]) -> Place | None:
        """The place of `name` in the list of today, or of what a server that is not open has had under it; None where
        there is none."""
        for roll in self._rolls[kind.what]:
            # Of what it has new the others tell by themselves.
            if not roll.part.has(kind.row.capability[0], "listChanged"):
                self.forget(roll.part, [kind.what])
        await self.roster(kind, context)
        return self.known(kind, name, context) or self._full(kind, name, context) or self._closed(kind, name)

    def _full(self, kind: Kind, name: str, context: Context[Any]) -> Place | None:
        for roll in self._rolls[kind.what]:
            if name.startswith(f"{roll.part.name}{SEPARATOR}"):
                entries = {entry[kind.key]: entry for entry in roll.known(context).entries}
                own = own_name(name, entries)
                return None if own is None else Place(roll.part, own, _task_support_in(entries[own]))
        return None

    def _closed(self, kind: Kind, name: str) -> Place | None:
        for roll in self._rolls[kind.what]:
            if roll.had(name):
                return Place(roll.part, name)
        return None


def _task_support_in(entry: dict[str, Any]) -> TaskSupport | None:
    said = declared(entry, ("execution", "taskSupport"))
    return said if said in get_args(TaskSupport) else None


async def _told(rolls: Sequence[Roll], context: Context[Any]) -> list[Told]:
    """The lists of all, each asked by itself, so that a slow one makes nobody wait for those behind it."""
    found: dict[int, Told] = {}

    async def ask(number: int, roll: Roll) -> None:
        found[number] = await roll.told(context)

    async with anyio.create_task_group() as tasks:
        for number, roll in enumerate(rolls):
            tasks.start_soon(ask, number, roll)
    return [found[number] for number in range(len(rolls))]

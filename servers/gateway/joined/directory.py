"""Directory of the tools and prompts of all servers, under names that are unique.

    files: read, search      read
    web:   load, search  ──▶ files__search
                             load
                             web__search

A name that several servers use gets the name of the server as a prefix at each of them, or every name does if the
operator wants that. A name that starts with the name of another server belongs to that one, so the entry gets the
prefix of its own server too; and while a server is away, its names go to no other server.

A tool whose name models don't accept, such as `load.all`, is listed as `web__loadall-` with a digest: many hosts pass
names on unchanged, and a model's API refuses the whole request because of one.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import anyio

from shared.client.group.names import fits_models, full_name, own_name, split_name
from shared.errors import DeclarationError
from shared.protocol.identity import find_capability
from shared.protocol.pagination import page
from shared.protocol.records import record
from shared.protocol.session.server import ServerSession
from shared.protocol.shaping import CachedResult
from shared.protocol.signing import Signer
from shared.protocol.types.tools import TaskSupport
from shared.protocol.uri_template import UriTemplate
from shared.server.dispatch.context import Context
from shared.text import plain

from .apps import page_of, rename_page, shared_pages
from .argument_schemas import flatten
from .list_cache import PROMPTS, TEMPLATES, TOOLS, Kind, ListCache, Listing
from .server import Part
from .uris import full_uri, split_uri

log = logging.getLogger("shared.gateway")

MAX_CLASHES = 1_000
"""Maximum number of name clashes that are logged and remembered; a server may produce new ones endlessly."""

Prefix = Literal["auto", "always"]


@record
class EntryPlace:
    """The location of an entry: its server, and its name there."""

    part: Part
    own: str
    task: TaskSupport | None = None
    """The support for tasks that a tool declares; None for anything else."""


class JoinedList:
    """One list of all servers: its entries under the names that clients see, and the place of each."""

    def __init__(
        self, kind: Kind, lists: Sequence[tuple[Part, Listing]], prefix: Prefix, gone: Sequence[Listing] = ()
    ) -> None:
        """`gone` contains the last lists of servers that are currently unavailable."""
        self._kind = kind
        self._names = frozenset(part.name for part, _ in lists)
        self._parts = [part for part, _ in lists]
        self._fresh_ms = min((listing.fresh_ms for _, listing in lists), default=0)
        self._scope = "public" if all(listing.is_public for _, listing in lists) else "private"
        self._pages: dict[tuple[str | None, int, bool], CachedResult] = {}
        self.places: dict[str, EntryPlace] = {}
        self.pages: dict[str, Part] = {}
        """The server of each page that a tool names."""
        self.templates: dict[Part, list[str]] = {}
        """The templates of a server that are published under another name than its own."""
        self.clashes: list[tuple[Part, str, str]] = []
        """The entries that were renamed because their own name would belong to another server: the server, and both
        names."""
        self._entries: list[dict[str, Any]] = []
        all_entries = [*(listing.entries for _, listing in lists), *(listing.entries for listing in gone)]
        counts = Counter(entry[kind.key] for entries in all_entries for entry in entries)
        shared = {name for name, count in counts.items() if prefix == "always" or count > 1}
        pages = shared_pages(all_entries) if kind is TOOLS else set()
        for part, listing in lists:
            for entry in listing.entries:
                page = page_of(entry) if kind is TOOLS else None
                self._add(part, entry if page is None else self._rename_page(part, entry, page, pages), shared)

    def _rename_page(self, part: Part, entry: dict[str, Any], own: str, shared: set[str]) -> dict[str, Any]:
        others = (other for other in self._parts if other is not part)
        is_others = split_uri(own)[0] in self._names or any(other.declares(own) for other in others)
        uri = full_uri(part.name, own) if own in shared or is_others else own
        self.pages[uri] = part
        if is_others:
            self.clashes.append((part, own, uri))
        return entry if uri == own else rename_page(entry, own, uri)

    def _add(self, part: Part, entry: dict[str, Any], shared: set[str]) -> None:
        own, key = entry[self._kind.key], self._kind.key
        name = own
        is_others = own in self.places or self.belongs_to_other(part, own)
        is_unfit = self._kind is TOOLS and not fits_models(own)
        if key == "name" and (own in shared or is_others or is_unfit):
            name = full_name(part.name, own)
        elif is_others:
            name = full_uri(part.name, own)
            self.templates.setdefault(part, []).append(own)
        if is_others:
            self.clashes.append((part, own, name))
        if name not in self.places:
            place = self.places[name] = EntryPlace(part, own, _task_support_in(entry))
            if is_unfit and own not in shared and not is_others:
                # A description of the server may name it.
                self.places[own] = place
            self._entries.append(entry if name == own else {**entry, key: name})

    def belongs_to_other(self, part: Part, name: str) -> bool:
        """Return True if `name`, which `part` lists, starts with the name of another server."""
        server = split_uri(name)[0] if self._kind is TEMPLATES else server_of(name)
        return server in self._names and (self._kind is TEMPLATES or server != part.name)

    def page(self, cursor: str | None, size: int, signer: Signer, *, is_flat: bool) -> CachedResult:
        """Return the page that begins at `cursor`, with flat arguments of tools if `is_flat`. Raises InvalidParams
        for a cursor that was not issued for this list."""
        result_page = self._pages.get((cursor, size, is_flat))
        if result_page is None:
            what, key = self._kind.what, itemgetter(self._kind.key)
            shown, following = page(self._entries, cursor, key, name=what, size=size, signer=signer)
            if is_flat and self._kind is TOOLS:
                shown = [{**tool, "inputSchema": flatten(tool["inputSchema"])} for tool in shown]
            result = {what: shown, "ttlMs": self._fresh_ms, "cacheScope": self._scope}
            if following is not None:
                result["nextCursor"] = following
            result_page = self._pages[cursor, size, is_flat] = CachedResult(result)
        return result_page


class Directory:
    """The lists of all servers. `returned` is called with the name of a list that is complete again after a server
    failed to list its entries."""

    def __init__(self, parts: Iterable[Part], prefix: Prefix, returned: Callable[[str], None]) -> None:
        self._parts = tuple(parts)
        self._prefix = prefix
        self._on_complete = returned
        self._caches = {
            kind.what: [ListCache(part, kind) for part in self._parts] for kind in (TOOLS, PROMPTS, TEMPLATES)
        }
        self._joined_lists: dict[str, JoinedList] = {}
        self._joined_lists_of: WeakKeyDictionary[ServerSession, dict[str, JoinedList]] = WeakKeyDictionary()
        self._ages: Counter[str] = Counter()
        """The number of invalidations of each list at one of the servers."""
        self._built: dict[str, int] = {}
        """The age at which each list was built."""
        self._clashes: set[tuple[str, str]] = set()
        self._incomplete: set[str] = set()
        """The lists to which a server has not contributed its entries."""

    def forget(self, part: Part, whats: Iterable[str], *, is_new: bool = False) -> None:
        """Invalidate these lists of `part`; `is_new` if it was opened again."""
        for what in whats:
            for cache in self._caches[what]:
                if cache.part is part:
                    cache.forget(is_new=is_new)
            self._ages[what] += 1

    def is_stale(self, kind: Kind) -> bool:
        """Return True if the list may have changed since clients received it."""
        return self._has_changed(kind) or kind.what in self._incomplete

    def _has_changed(self, kind: Kind) -> bool:
        return self._built.get(kind.what) != self._ages[kind.what]

    async def page(self, kind: Kind, context: Context[Any], cursor: str | None) -> CachedResult:
        """Return the page that begins at `cursor`, as the client of `context` should see it. Raises InvalidParams for
        a cursor that was not issued for this list."""
        own = self._joined_lists_of.get(context.link.session, {}).get(kind.what)
        # A client that reads further pages gets the list that it began, which is not rebuilt for each page.
        if cursor is None or own is None or self._has_changed(kind):
            own = await self.joined_list(kind, context)
        # From 2026-07-28 on, hosts know that a schema may have any keyword at its top level (SEP-2106).
        is_flat = context.peer.has_handshake
        return own.page(cursor, context.running.server.page_size, context.running.signer, is_flat=is_flat)

    async def joined_list(self, kind: Kind, context: Context[Any]) -> JoinedList:
        """Return the list as the client of `context` should see it, built again if it may have changed."""
        what, age = kind.what, self._ages[kind.what]
        joined, differs = self._joined_lists.get(what), any(part.differs_by_client for part in self._parts)
        if joined is not None and not differs and not self.is_stale(kind):
            return joined
        caches = self._caches[what]
        missing = [cache for cache in caches if cache.is_missing]
        listings: dict[ListCache, Listing] = {}

        async def request(cache: ListCache) -> None:
            listings[cache] = await cache.current(context)

        # At the same time, so that a slow server does not delay those after it.
        async with anyio.create_task_group() as tasks:
            for cache in caches:
                tasks.start_soon(request, cache)
        lists = [(cache.part, listings[cache]) for cache in caches]
        shown = zip(caches, lists, strict=True)
        gone = [cache.last for cache, (_, listing) in shown if cache.is_gone and not listing.entries]
        joined = JoinedList(kind, lists, self._prefix, gone)
        for part, own, name in joined.clashes:
            if (part.name, own) not in self._clashes and len(self._clashes) < MAX_CLASHES:
                self._clashes.add((part.name, own))
                text = "%s: its %s is known as %s, since another server has that name"
                log.warning(text, part.name, plain(own[:200]), plain(name[:200]))
        # A build that began before a change may end after one that began after it.
        if age >= self._built.get(what, 0):
            self._joined_lists[what], self._built[what] = joined, age
        if all(cache.is_fresh or cache.part.running is None for cache in caches):
            self._incomplete.discard(what)
        else:
            # The next request asks the server again, unless it has just been too slow.
            self._incomplete.add(what)
        if differs and context.peer.has_handshake:
            self._joined_lists_of.setdefault(context.link.session, {})[what] = joined
        if not all(cache.is_missing for cache in missing):
            self._on_complete(what)
        return joined

    async def entries(self, kind: Kind, context: Context[Any]) -> list[tuple[Part, Listing]]:
        """Return the list of each server, or its last one; servers that have announced a change are asked again."""
        if self._has_changed(kind):
            await self.joined_list(kind, context)
        return [(cache.part, cache.known(context)) for cache in self._caches[kind.what]]

    def page_owner(self, uri: str, context: Context[Any]) -> Part | None:
        """Return the server of the page at `uri`, from the last list of tools of the client of `context`; None if
        none names it."""
        joined_list = self._last_list(TOOLS, context)
        return None if joined_list is None else joined_list.pages.get(uri)

    def has_full_template(self, part: Part, uri: str) -> bool:
        """Return True if `uri` matches a template of `part` that is published under another name than its own."""
        joined_list = self._joined_lists.get(TEMPLATES.what)
        return joined_list is not None and any(
            fits(template, uri) for template in joined_list.templates.get(part, ())
        )

    def find_known(self, kind: Kind, name: str, context: Context[Any]) -> EntryPlace | None:
        """Return the place of `name` in the last list of the client of `context`; None if it is not in it."""
        joined_list = self._last_list(kind, context)
        return None if joined_list is None else joined_list.places.get(name)

    def _last_list(self, kind: Kind, context: Context[Any]) -> JoinedList | None:
        own = self._joined_lists_of.get(context.link.session) if self._joined_lists_of else None
        return own.get(kind.what) if own is not None else self._joined_lists.get(kind.what)

    async def look_up(self, kind: Kind, name: str, context: Context[Any]) -> EntryPlace | None:
        """Return the place of `name` in the current list, or at a server that is not open and had the name; None if
        there is no such entry."""
        await self.joined_list(kind, context)
        place = self.find_known(kind, name, context)
        if place is not None:
            return place
        # A name with the prefix of a server, or a name that a server had before it closed.
        for cache in self._caches[kind.what]:
            if server_of(name) == cache.part.name:
                entries = {entry[kind.key]: entry for entry in cache.known(context).entries}
                own = own_name(name, entries)
                return None if own is None else EntryPlace(cache.part, own, _task_support_in(entries[own]))
        return next((EntryPlace(cache.part, name) for cache in self._caches[kind.what] if cache.had(name)), None)


def server_of(name: str) -> str:
    """Return the server to which the name of a tool or prompt belongs; empty if the name has no prefix."""
    try:
        return split_name(name)[0]
    except ValueError:
        return ""


@lru_cache(1_000)
def _compile(template: str) -> UriTemplate | None:
    try:
        return UriTemplate(template)
    except DeclarationError:
        return None


def fits(template: str, uri: str) -> bool:
    """Return True if `uri` matches `template`; False if that is not a valid template."""
    compiled = _compile(template)
    return compiled is not None and compiled.match(uri) is not None


def _task_support_in(entry: dict[str, Any]) -> TaskSupport | None:
    support = find_capability(entry, ("execution", "taskSupport"))
    return support if support in get_args(TaskSupport) else None

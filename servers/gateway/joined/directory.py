"""Directory of the tools, prompts and resource templates of all servers, under unique names.

    files: read, search      read
    web:   load, search  ──▶ files__search
                             load
                             web__search

If several servers use a name, each of their entries gets the name of its server as a prefix; if the operator wants
that, all entries do. A name that starts with the name of another server would seem to belong to that one, so such an
entry gets the prefix of its own server too. While a server is unavailable, its names are not given to another server.

Some names of tools, such as `load.all`, are invalid in the APIs of models. Many hosts pass names on unchanged, and
the API refuses the whole request because of one such name. So this tool is listed as `web__loadall-` and a digest.
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

from .apps import rename_ui_uri, shared_ui_uris, ui_uri_of
from .argument_schemas import flatten
from .list_cache import PROMPTS, TEMPLATES, TOOLS, Kind, ListCache, Listing
from .server import JoinedServer
from .uris import qualified_uri, split_uri

log = logging.getLogger("shared.gateway")

MAX_CLASHES = 1_000
"""Maximum number of renamed entries that are logged, since a server may produce new ones endlessly."""

Prefix = Literal["auto", "always"]


@record
class EntryLocation:
    """The location of an entry: its server, and its name (or URI) at that server."""

    server: JoinedServer
    name: str
    task: TaskSupport | None = None
    """Whether a tool supports tasks, as declared in the list; None if it declares nothing, and for other entries."""


class JoinedList:
    """One list, such as that of tools, of all servers: the entries under clients' names, and their locations."""

    def __init__(
        self,
        kind: Kind,
        lists: Sequence[tuple[JoinedServer, Listing]],
        prefix: Prefix,
        unavailable_lists: Sequence[Listing] = (),
    ) -> None:
        """`unavailable_lists` contains the last lists of currently unavailable servers, whose names stay reserved."""
        self._kind = kind
        self._server_names = frozenset(server.name for server, _ in lists)
        self._servers = [server for server, _ in lists]
        self._fresh_ms = min((listing.fresh_ms for _, listing in lists), default=0)
        self._scope = "public" if all(listing.is_public for _, listing in lists) else "private"
        self._result_pages: dict[tuple[str | None, int, bool], CachedResult] = {}
        self.locations: dict[str, EntryLocation] = {}
        self.ui_owners: dict[str, JoinedServer] = {}
        """The server of each UI resource that a tool names, by the URI that clients see."""
        self.templates: dict[JoinedServer, list[str]] = {}
        """The URI templates of each server that are listed with the server's name in them."""
        self.clashes: list[tuple[JoinedServer, str, str]] = []
        """The entries that were renamed because another server claims their name: the server, the original name, and
        the listed name."""
        self._entries: list[dict[str, Any]] = []
        all_entries = [
            *(listing.entries for _, listing in lists),
            *(listing.entries for listing in unavailable_lists),
        ]
        counts = Counter(entry[kind.key] for entries in all_entries for entry in entries)
        ambiguous = {name for name, count in counts.items() if prefix == "always" or count > 1}
        shared_uris = shared_ui_uris(all_entries) if kind is TOOLS else set()
        for server, listing in lists:
            for entry in listing.entries:
                ui_uri = ui_uri_of(entry) if kind is TOOLS else None
                self._add(
                    server,
                    entry if ui_uri is None else self._rename_ui_uri(server, entry, ui_uri, shared_uris),
                    ambiguous,
                )

    def _rename_ui_uri(
        self, server: JoinedServer, entry: dict[str, Any], uri: str, shared: set[str]
    ) -> dict[str, Any]:
        others = (other for other in self._servers if other is not server)
        is_claimed_elsewhere = split_uri(uri)[0] in self._server_names or any(other.declares(uri) for other in others)
        client_uri = qualified_uri(server.name, uri) if uri in shared or is_claimed_elsewhere else uri
        self.ui_owners[client_uri] = server
        if is_claimed_elsewhere:
            self.clashes.append((server, uri, client_uri))
        return entry if client_uri == uri else rename_ui_uri(entry, uri, client_uri)

    def _add(self, server: JoinedServer, entry: dict[str, Any], ambiguous: set[str]) -> None:
        original, key = entry[self._kind.key], self._kind.key
        name = original
        is_claimed_elsewhere = original in self.locations or self.belongs_to_other(server, original)
        is_invalid_for_models = self._kind is TOOLS and not fits_models(original)
        if key == "name" and (original in ambiguous or is_claimed_elsewhere or is_invalid_for_models):
            name = full_name(server.name, original)
        elif is_claimed_elsewhere:
            name = qualified_uri(server.name, original)
            self.templates.setdefault(server, []).append(original)
        if is_claimed_elsewhere:
            self.clashes.append((server, original, name))
        if name not in self.locations:
            location = self.locations[name] = EntryLocation(server, original, _task_support_in(entry))
            if is_invalid_for_models and original not in ambiguous and not is_claimed_elsewhere:
                # The server's descriptions may mention the original name, so calls with that name work too.
                self.locations[original] = location
            self._entries.append(entry if name == original else {**entry, key: name})

    def belongs_to_other(self, server: JoinedServer, name: str) -> bool:
        """Return True if `name`, which `server` lists, starts with the name of another server, or, for a template,
        with the name of any server."""
        named_server = split_uri(name)[0] if self._kind is TEMPLATES else server_of(name)
        return named_server in self._server_names and (self._kind is TEMPLATES or named_server != server.name)

    def page(self, cursor: str | None, size: int, signer: Signer, *, is_flat: bool) -> CachedResult:
        """Return the page that begins at `cursor`. With `is_flat`, the schemas of tools' arguments are flattened (see
        `flatten`). Raises InvalidParams for a cursor that was not issued for this list."""
        result_page = self._result_pages.get((cursor, size, is_flat))
        if result_page is None:
            list_name, key = self._kind.list_name, itemgetter(self._kind.key)
            shown, following = page(self._entries, cursor, key, name=list_name, size=size, signer=signer)
            if is_flat and self._kind is TOOLS:
                shown = [{**tool, "inputSchema": flatten(tool["inputSchema"])} for tool in shown]
            result = {list_name: shown, "ttlMs": self._fresh_ms, "cacheScope": self._scope}
            if following is not None:
                result["nextCursor"] = following
            result_page = self._result_pages[cursor, size, is_flat] = CachedResult(result)
        return result_page


class Directory:
    """The joined lists. `on_complete` is called with the name of a list when it is complete again after a server had
    failed to list its entries."""

    def __init__(self, servers: Iterable[JoinedServer], prefix: Prefix, on_complete: Callable[[str], None]) -> None:
        self._servers = tuple(servers)
        self._prefix = prefix
        self._on_complete = on_complete
        self._caches = {
            kind.list_name: [ListCache(server, kind) for server in self._servers]
            for kind in (TOOLS, PROMPTS, TEMPLATES)
        }
        self._joined_lists: dict[str, JoinedList] = {}
        self._joined_lists_by_session: WeakKeyDictionary[ServerSession, dict[str, JoinedList]] = WeakKeyDictionary()
        self._invalidations: Counter[str] = Counter()
        """How often each list was invalidated at any of the servers."""
        self._built_at: dict[str, int] = {}
        """The number of invalidations before each joined list was built."""
        self._logged_clashes: set[tuple[str, str]] = set()
        self._incomplete: set[str] = set()
        """The joined lists that lack the entries of some server, because the server failed to list them."""

    def forget(self, server: JoinedServer, list_names: Iterable[str], *, is_new: bool = False) -> None:
        """Invalidate these lists of `server`. `is_new` is true if the server was opened again."""
        for list_name in list_names:
            for cache in self._caches[list_name]:
                if cache.server is server:
                    cache.forget(is_new=is_new)
            self._invalidations[list_name] += 1

    def is_stale(self, kind: Kind) -> bool:
        """Return True if the list may have changed since it was built."""
        return self._has_changed(kind) or kind.list_name in self._incomplete

    def _has_changed(self, kind: Kind) -> bool:
        return self._built_at.get(kind.list_name) != self._invalidations[kind.list_name]

    async def page(self, kind: Kind, context: Context[Any], cursor: str | None) -> CachedResult:
        """Return the page that begins at `cursor` of the list that the client of `context` sees. Raises InvalidParams
        for a cursor that was not issued for this list."""
        joined = self._joined_lists_by_session.get(context.link.session, {}).get(kind.list_name)
        # Further pages come from the same list as the first page, so that the list is not rebuilt for each page.
        if cursor is None or joined is None or self._has_changed(kind):
            joined = await self.joined_list(kind, context)
        # From 2026-07-28 on, hosts know that a schema may have any keyword at its top level (SEP-2106).
        is_flat = context.peer.has_handshake
        return joined.page(cursor, context.running.server.page_size, context.running.signer, is_flat=is_flat)

    async def joined_list(self, kind: Kind, context: Context[Any]) -> JoinedList:
        """Return the list that the client of `context` sees; build it again if it may have changed."""
        list_name, invalidations = kind.list_name, self._invalidations[kind.list_name]
        joined = self._joined_lists.get(list_name)
        needs_fresh = any(server.needs_fresh_lists for server in self._servers)
        if joined is not None and not needs_fresh and not self.is_stale(kind):
            return joined
        caches = self._caches[list_name]
        missing = [cache for cache in caches if cache.has_failed]
        listings: dict[ListCache, Listing] = {}

        async def request(cache: ListCache) -> None:
            listings[cache] = await cache.fetch_if_stale(context)

        # Request the lists concurrently, so that a slow server does not delay the others.
        async with anyio.create_task_group() as tasks:
            for cache in caches:
                tasks.start_soon(request, cache)
        lists = [(cache.server, listings[cache]) for cache in caches]
        shown = zip(caches, lists, strict=True)
        unavailable_lists = [
            cache.last_listing for cache, (_, listing) in shown if cache.is_unavailable and not listing.entries
        ]
        joined = JoinedList(kind, lists, self._prefix, unavailable_lists)
        for server, original, name in joined.clashes:
            if (server.name, original) not in self._logged_clashes and len(self._logged_clashes) < MAX_CLASHES:
                self._logged_clashes.add((server.name, original))
                text = "%s: its %s is known as %s, since another server has that name"
                log.warning(text, server.name, plain(original[:200]), plain(name[:200]))
        # While this call fetched the lists, another call may have built a list from newer entries.
        if invalidations >= self._built_at.get(list_name, 0):
            self._joined_lists[list_name], self._built_at[list_name] = joined, invalidations
        if all(cache.is_fresh or cache.server.running is None for cache in caches):
            self._incomplete.discard(list_name)
        else:
            # The next request fetches the missing entries again, unless the server has just been too slow.
            self._incomplete.add(list_name)
        if needs_fresh and context.peer.has_handshake:
            self._joined_lists_by_session.setdefault(context.link.session, {})[list_name] = joined
        if not all(cache.has_failed for cache in missing):
            self._on_complete(list_name)
        return joined

    async def entries(self, kind: Kind, context: Context[Any]) -> list[tuple[JoinedServer, Listing]]:
        """Return the last list of each server, fetched again first if the server has announced a change."""
        if self._has_changed(kind):
            await self.joined_list(kind, context)
        return [(cache.server, cache.last_for(context)) for cache in self._caches[kind.list_name]]

    def ui_owner(self, uri: str, context: Context[Any]) -> JoinedServer | None:
        """Return the server of the UI resource at `uri`, which a tool names in the last list for the client of
        `context`; None if no tool does."""
        joined_list = self._last_list(TOOLS, context)
        return None if joined_list is None else joined_list.ui_owners.get(uri)

    def has_renamed_template(self, server: JoinedServer, uri: str) -> bool:
        """Return True if `uri` matches a template of `server` that is listed with the server's name in it."""
        joined_list = self._joined_lists.get(TEMPLATES.list_name)
        return joined_list is not None and any(
            matches_template(template, uri) for template in joined_list.templates.get(server, ())
        )

    def find_known(self, kind: Kind, name: str, context: Context[Any]) -> EntryLocation | None:
        """Return the location of `name` in the last list for the client of `context`; None if that lacks the name."""
        joined_list = self._last_list(kind, context)
        return None if joined_list is None else joined_list.locations.get(name)

    def _last_list(self, kind: Kind, context: Context[Any]) -> JoinedList | None:
        session_lists = (
            self._joined_lists_by_session.get(context.link.session) if self._joined_lists_by_session else None
        )
        return (
            session_lists.get(kind.list_name) if session_lists is not None else self._joined_lists.get(kind.list_name)
        )

    async def look_up(self, kind: Kind, name: str, context: Context[Any]) -> EntryLocation | None:
        """Return the location of `name` according to the current list, or else at a server that had the name before
        it became unavailable; None if there is no such entry."""
        await self.joined_list(kind, context)
        location = self.find_known(kind, name, context)
        if location is not None:
            return location
        # A client may use a name with the prefix of its server although the current list has it without, or vice
        # versa.
        for cache in self._caches[kind.list_name]:
            if server_of(name) == cache.server.name:
                entries = {entry[kind.key]: entry for entry in cache.last_for(context).entries}
                original = own_name(name, entries)
                return (
                    None
                    if original is None
                    else EntryLocation(cache.server, original, _task_support_in(entries[original]))
                )
        return next(
            (EntryLocation(cache.server, name) for cache in self._caches[kind.list_name] if cache.had_entry(name)),
            None,
        )


def server_of(name: str) -> str:
    """Return the name of the server that is the prefix of a tool's or prompt's name; empty if there is no prefix."""
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


def matches_template(template: str, uri: str) -> bool:
    """Return True if `uri` matches `template`; False if that is not a valid template."""
    compiled = _compile(template)
    return compiled is not None and compiled.match(uri) is not None


def _task_support_in(entry: dict[str, Any]) -> TaskSupport | None:
    support = find_capability(entry, ("execution", "taskSupport"))
    return support if support in get_args(TaskSupport) else None

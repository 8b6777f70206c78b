"""Cache of one list of one server, valid until the server announces a change.

If the server answers too slowly, its last list remains in use, and is not fetched again for a while. If the server
answers with an error, it has no entries until it succeeds.

If the lists of a server may differ by client, or the server does not announce changes, each request fetches the list
again. The cached list then only serves to find the server of a name.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import anyio
from pydantic import ValidationError

from shared.errors import InputRequired, InvalidResult, McpError
from shared.protocol.methods import REQUESTS, Method
from shared.protocol.records import record
from shared.protocol.session.server import ServerSession
from shared.protocol.types.base import Wire, describe_first_error
from shared.protocol.types.prompts import Prompt
from shared.protocol.types.resources import ResourceTemplate
from shared.protocol.types.tools import ListParams, Tool
from shared.server.dispatch.context import Context
from shared.server.dispatch.listings import FRESH_MS

from .argument_schemas import drop_unknown_references
from .server import JoinedServer

_log = logging.getLogger("shared.gateway")

LISTING_SECONDS = 5.0
"""Seconds that a server has to return all pages of a list."""
WAIT_SECONDS = 30.0
"""Seconds to wait before a list is fetched again from a server that was too slow."""
MAX_PAGES = 1_000
_METHODS = {row.name: row for row in REQUESTS}


@record
class Kind:
    """A kind of list: its name in results, the method that returns it, and the model of an entry."""

    list_name: str
    row: Method
    key: str
    """The field that identifies an entry."""
    model: type[Wire]


TOOLS = Kind("tools", _METHODS["tools/list"], "name", Tool)
PROMPTS = Kind("prompts", _METHODS["prompts/list"], "name", Prompt)
TEMPLATES = Kind("resourceTemplates", _METHODS["resources/templates/list"], "uriTemplate", ResourceTemplate)


@record
class Listing:
    """A complete list, as the server returned it."""

    entries: list[dict[str, Any]]
    fresh_ms: int = FRESH_MS
    """Milliseconds for which clients may cache it."""
    is_public: bool = True
    """True if shared caches may store it."""


_NOTHING = Listing([])


class ListCache:
    """The cached list of one `kind` at one server."""

    def __init__(self, server: JoinedServer, kind: Kind) -> None:
        self.server = server
        self.kind = kind
        self.last_listing = _NOTHING
        """The last list that was fetched for any client; it stays while the server is closed."""
        self._last_by_session: WeakKeyDictionary[ServerSession, Listing] = WeakKeyDictionary()
        self.is_fresh = False
        """True if the server has announced no change since the list was fetched."""
        self.has_failed = False
        """True if the server was too slow or returned an error when the list was last fetched."""
        self._was_refused = False
        self._invalidations = self._attempts = 0
        self._last_age = -1
        """The number of invalidations before the last attempt began."""
        self._next_attempt = float("-inf")
        self._next_attempt_by_session: WeakKeyDictionary[ServerSession, float] = WeakKeyDictionary()
        self._last_reset = float("-inf")
        """The time at which an announced change last ended the wait after a slow answer."""
        self._lock = anyio.Lock()

    def forget(self, *, is_new: bool = False) -> None:
        """Invalidate the list, so that the next request fetches it again. `is_new` is true if the server was opened
        again."""
        self.is_fresh = False
        self._invalidations += 1
        now = anyio.current_time()
        was_late = self._next_attempt > now or any(until > now for until in self._next_attempt_by_session.values())
        # After a change, even a server that was too slow is asked again at once, but only once per `WAIT_SECONDS`
        # unless it is new: a server that announces changes endlessly would delay all clients each time.
        if is_new or (was_late and now >= self._last_reset + WAIT_SECONDS):
            self._last_reset = self._last_reset if is_new else now
            self._next_attempt = float("-inf")
            self._next_attempt_by_session.clear()

    def last_for(self, context: Context[Any]) -> Listing:
        """Return the last list that was fetched for the client of `context`, or else for any client."""
        return (
            self._last_by_session.get(context.link.session, self.last_listing)
            if self._last_by_session
            else self.last_listing
        )

    def had_entry(self, name: str) -> bool:
        """Return True if the server is unavailable and its last list contained `name`."""
        return self.is_unavailable and any(entry[self.kind.key] == name for entry in self.last_listing.entries)

    @property
    def is_unavailable(self) -> bool:
        """True if the server is closed or did not return the list the last time."""
        return self.server.running is None or self.has_failed

    async def fetch_if_stale(self, context: Context[Any]) -> Listing:
        """Return the list for the client of `context`, and fetch it first unless it is fresh. Return the last list if
        the server is too slow, and an empty one if it returns an error."""
        server = self.server
        if not server.has_capability(self.kind.row.capability[0]):
            return _NOTHING
        if server.needs_fresh_lists:
            until = self._next_attempt
            if self._is_cached_by_session(context):
                until = self._next_attempt_by_session.get(context.link.session, float("-inf"))
            is_due = anyio.current_time() >= until
            return await self._fetch(context) if is_due else self._visible_listing(context)
        if not self.is_fresh:
            attempts, invalidations = self._attempts, self._invalidations
            async with self._lock:
                # If another request has just tried, this one uses the result, unless a change was announced after
                # that one had begun and before this one.
                has_result = self._attempts != attempts and self._last_age >= invalidations
                if not has_result and anyio.current_time() >= self._next_attempt:
                    await self._fetch(context)
        return self._visible_listing(context)

    def _visible_listing(self, context: Context[Any]) -> Listing:
        if self.server.needs_fresh_lists:
            # A list that was fetched for another client must not be used for this one.
            return self._last_by_session.get(context.link.session, _NOTHING)
        return _NOTHING if self._was_refused else self.last_for(context)

    def _is_cached_by_session(self, context: Context[Any]) -> bool:
        return self.server.needs_fresh_lists and context.peer.has_handshake

    async def _fetch(self, context: Context[Any]) -> Listing:
        age, listing = self._invalidations, None
        with anyio.move_on_after(LISTING_SECONDS) as waiting:
            try:
                listing = await _fetch_all(self.server, self.kind, context)
            except (McpError, InputRequired) as error:
                # Until it succeeds, each request fetches the list again; warn only the first time.
                if not self._was_refused:
                    _log.warning("%s: its %s are not listed: %s", self.server.name, self.kind.list_name, error)
        self._attempts, self._last_age = self._attempts + 1, age
        self.has_failed, self._was_refused = listing is None, listing is None and not waiting.cancelled_caught
        if listing is None:
            if waiting.cancelled_caught:
                until = anyio.current_time() + WAIT_SECONDS
                if self._is_cached_by_session(context):
                    self._next_attempt_by_session[context.link.session] = until
                else:
                    self._next_attempt = until
            return _NOTHING if self._was_refused else self._visible_listing(context)
        self.last_listing, self.is_fresh = listing, self._invalidations == age
        if self._is_cached_by_session(context):
            self._last_by_session[context.link.session] = listing
        return listing


async def _fetch_all(server: JoinedServer, kind: Kind, context: Context[Any]) -> Listing:
    """Fetch all pages of a list. Raises the same errors as `JoinedServer.ask`, and InvalidResult for a result without
    a list."""
    entries: dict[str, dict[str, Any]] = {}
    fresh_ms, is_public, cursor = FRESH_MS, True, None
    cursors: set[str | None] = {None}
    for _ in range(MAX_PAGES):
        page = await server.ask(context, kind.row, ListParams(cursor=cursor))
        entries_of_page = page.get(kind.list_name)
        if not isinstance(entries_of_page, list):
            raise InvalidResult(kind.row.name, kind.list_name, "is not a list", dict(page))
        for entry in valid_entries(kind.model, entries_of_page):
            entries.setdefault(entry[kind.key], entry)
        # Servers with sessions send neither field: neither clients nor shared caches may cache their lists.
        fresh_ms = min(fresh_ms, fresh_ms_of(page))
        is_public = is_public and page.get("cacheScope") == "public"
        cursor = cursor_in(page)
        if cursor is None and page.get("nextCursor") is not None:
            _log.warning("%s: further %s are not listed: its cursor is not a string", server.name, kind.list_name)
        if cursor in cursors:
            # This was the last page, or the cursor leads back to an earlier one.
            break
        cursors.add(cursor)
    return Listing(list(entries.values()), fresh_ms, is_public)


def cursor_in(page: Mapping[str, Any]) -> str | None:
    """Return the cursor of the next page; None if there is none, or a third-party server sent a malformed one."""
    cursor = page.get("nextCursor")
    return cursor if isinstance(cursor, str) else None


def fresh_ms_of(page: Mapping[str, Any]) -> int:
    """Return the number of milliseconds for which clients may cache a page; 0 if that is missing, or if a third-party
    server sent a malformed one."""
    ttl = page.get("ttlMs")
    return ttl if isinstance(ttl, int) and ttl >= 0 else 0


def valid_entries(model: type[Wire], entries: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the valid entries, without references to missing definitions in their schemas. Clients refuse a whole
    list because of one invalid entry, and the joined list includes the entries of other servers."""
    valid: list[dict[str, Any]] = []
    for listed in entries:
        entry = _valid_fields(model, listed) if isinstance(listed, dict) else None
        if entry is None:
            continue
        if model is Tool and entry["inputSchema"].get("type") != "object":
            text = "the tool %s was omitted from the list of all servers: its arguments are no object"
            _log.info(text, entry["name"])
            continue
        valid.append(_with_known_references(entry) if model is Tool else entry)
    return valid


def _with_known_references(tool: dict[str, Any]) -> dict[str, Any]:
    schemas = {
        name: drop_unknown_references(tool[name], tool[name])
        for name in ("inputSchema", "outputSchema")
        if isinstance(tool.get(name), dict)
    }
    return {**tool, **schemas}


def _valid_fields(model: type[Wire], entry: dict[str, Any]) -> dict[str, Any] | None:
    """Return the entry without its invalid optional fields; None if a required field is invalid."""
    try:
        model.model_validate(entry)
    except ValidationError as error:
        invalid = {fault["loc"][0] for fault in error.errors()}
        rest = {name: item for name, item in entry.items() if name not in invalid}
        try:
            model.model_validate(rest)
        except ValidationError:
            _log.info("an entry was omitted from the list of all servers: %s", describe_first_error(error))
            return None
        _log.info(
            "an invalid field of an entry was omitted from the list of all servers: %s", describe_first_error(error)
        )
        return rest
    return entry

"""Cache of one list of one server, valid until the server announces a change.

After a slow answer, the last list remains in use, and the server is not asked again at once. A server that fails to
list has no entries until it succeeds.

If its lists may differ by client, or it announces no changes, each request fetches them again, and the cache only
shows to which server a name belongs.
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
from .server import Part

_log = logging.getLogger("shared.gateway")

LISTING_SECONDS = 5.0
"""Seconds that a server has to list all its entries of a kind."""
WAIT_SECONDS = 30.0
"""Seconds for which a server that missed the limit is not asked again."""
MAX_PAGES = 1_000
_ROWS = {row.name: row for row in REQUESTS}


@record
class Kind:
    """A kind of list: its name, its method and its capability."""

    what: str
    row: Method
    key: str
    """The key that identifies an entry."""
    model: type[Wire]


TOOLS = Kind("tools", _ROWS["tools/list"], "name", Tool)
PROMPTS = Kind("prompts", _ROWS["prompts/list"], "name", Prompt)
TEMPLATES = Kind("resourceTemplates", _ROWS["resources/templates/list"], "uriTemplate", ResourceTemplate)


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
    """The list of one `kind` at one server."""

    def __init__(self, part: Part, kind: Kind) -> None:
        self.part = part
        self.kind = kind
        self.last = _NOTHING
        """The last list returned to anyone; it remains while the server is closed."""
        self._last_of: WeakKeyDictionary[ServerSession, Listing] = WeakKeyDictionary()
        self.is_fresh = False
        """True if it is current."""
        self.is_missing = False
        """True if the server failed to list it the last time."""
        self._is_refused = False
        self._age = self._attempts = 0
        self._next_attempt = float("-inf")
        self._next_attempt_of: WeakKeyDictionary[ServerSession, float] = WeakKeyDictionary()
        self._last_reset = float("-inf")
        """The time at which a change last ended the wait."""
        self._lock = anyio.Lock()

    def forget(self, *, is_new: bool = False) -> None:
        """Invalidate it, so that the next request asks the server again."""
        self.is_fresh = False
        self._age += 1
        now = anyio.current_time()
        was_late = self._next_attempt > now or any(until > now for until in self._next_attempt_of.values())
        # A server that was too slow is asked again at once, but only once per `WAIT_SECONDS` unless it is new: one
        # that announces changes endlessly would delay everyone each time.
        if is_new or (was_late and now >= self._last_reset + WAIT_SECONDS):
            self._last_reset = self._last_reset if is_new else now
            self._next_attempt = float("-inf")
            self._next_attempt_of.clear()

    def known(self, context: Context[Any]) -> Listing:
        """Return the last list of the client of `context`, as far as it is known."""
        return self._last_of.get(context.link.session, self.last) if self._last_of else self.last

    def had(self, name: str) -> bool:
        """Return True if it contained `name` before the server closed or failed to list it."""
        return self.is_gone and any(entry[self.kind.key] == name for entry in self.last.entries)

    @property
    def is_gone(self) -> bool:
        """True if the server is closed, or fails to list it, so that none of its entries are shown."""
        return self.part.running is None or self.is_missing

    async def current(self, context: Context[Any]) -> Listing:
        """Return the current list for the client of `context`; the last one if it does not arrive in time, and an
        empty one if the server fails."""
        part = self.part
        if not part.has(self.kind.row.capability[0]):
            return _NOTHING
        if part.differs_by_client:
            until = self._next_attempt
            if self._has_own(context):
                until = self._next_attempt_of.get(context.link.session, float("-inf"))
            is_due = anyio.current_time() >= until
            return await self._learn(context) if is_due else self._visible(context)
        if not self.is_fresh:
            attempts = self._attempts
            async with self._lock:
                # A request that waited for another request's attempt does not try again.
                if self._attempts == attempts and anyio.current_time() >= self._next_attempt:
                    await self._learn(context)
        return self._visible(context)

    def _visible(self, context: Context[Any]) -> Listing:
        if self.part.differs_by_client:
            # The list of another client may be specific to that one.
            return self._last_of.get(context.link.session, _NOTHING)
        return _NOTHING if self._is_refused else self.known(context)

    def _has_own(self, context: Context[Any]) -> bool:
        return self.part.differs_by_client and context.peer.has_handshake

    async def _learn(self, context: Context[Any]) -> Listing:
        age, listing = self._age, None
        with anyio.move_on_after(LISTING_SECONDS) as waiting:
            try:
                listing = await _fetch_all(self.part, self.kind, context)
            except (McpError, InputRequired) as error:
                # Every request asks again until it succeeds: one warning is enough.
                if not self._is_refused:
                    _log.warning("%s: its %s are not listed: %s", self.part.name, self.kind.what, error)
        self._attempts += 1
        self.is_missing, self._is_refused = listing is None, listing is None and not waiting.cancelled_caught
        if listing is None:
            if waiting.cancelled_caught:
                until = anyio.current_time() + WAIT_SECONDS
                if self._has_own(context):
                    self._next_attempt_of[context.link.session] = until
                else:
                    self._next_attempt = until
            return _NOTHING if self._is_refused else self._visible(context)
        self.last, self.is_fresh = listing, self._age == age
        if self._has_own(context):
            self._last_of[context.link.session] = listing
        return listing


async def _fetch_all(part: Part, kind: Kind, context: Context[Any]) -> Listing:
    """Fetch all pages of a list. Raises the same errors as `Part.ask`, and InvalidResult for a result that is not a
    list."""
    entries: dict[str, dict[str, Any]] = {}
    fresh_ms, is_public, cursor = FRESH_MS, True, None
    cursors: set[str | None] = {None}
    for _ in range(MAX_PAGES):
        page = await part.ask(context, kind.row, ListParams(cursor=cursor))
        entries_of_page = page.get(kind.what)
        if not isinstance(entries_of_page, list):
            raise InvalidResult(kind.row.name, kind.what, "is not a list", dict(page))
        for entry in valid_entries(kind.model, entries_of_page):
            entries.setdefault(entry[kind.key], entry)
        # A result without these fields, as from servers of the handshake era, must not be cached for long, or by
        # shared caches.
        fresh_ms = min(fresh_ms, fresh_ms_of(page))
        is_public = is_public and page.get("cacheScope") == "public"
        cursor = cursor_in(page)
        if cursor is None and page.get("nextCursor"):
            _log.warning("%s: further %s are not listed: its cursor is not a string", part.name, kind.what)
        if cursor in cursors:
            # This was the last page, or the list is endless.
            break
        cursors.add(cursor)
    return Listing(list(entries.values()), fresh_ms, is_public)


def cursor_in(page: Mapping[str, Any]) -> str | None:
    """Return the cursor of the next page, given a page that may come from a third-party server; None if there is
    none."""
    cursor = page.get("nextCursor")
    return cursor if isinstance(cursor, str) and cursor else None


def fresh_ms_of(page: Mapping[str, Any]) -> int:
    """Return the milliseconds for which clients may cache a page, which may come from a third-party server; 0 if it
    has none."""
    ttl = page.get("ttlMs")
    return ttl if isinstance(ttl, int) and ttl >= 0 else 0


def valid_entries(model: type[Wire], entries: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the valid entries, whose schemas refer to no missing definition. Clients refuse a whole list because of
    one that is invalid, and here it would include the lists of other servers."""
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
    """Return the entry without optional fields that are invalid; None if a required one is."""
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

"""What one of the servers lists of one kind, kept until it says that this has changed.

A server that takes its time is not waited for again before long: what it has told last stands. One that fails to
list has nothing to show until it lists again.
Where its lists may be others for each client, they are asked for anew by whoever wants to see them, and what is kept
only tells whose a name is.
"""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import anyio
from pydantic import ValidationError

from shared.errors import InputRequired, InvalidResult, McpError
from shared.protocol.methods import REQUESTS, Method
from shared.protocol.records import record
from shared.protocol.session.server import ServerSession
from shared.protocol.types.base import Wire, first_fault
from shared.protocol.types.prompts import Prompt
from shared.protocol.types.resources import ResourceTemplate
from shared.protocol.types.tools import ListParams, Tool
from shared.server.dispatch.context import Context
from shared.server.dispatch.listings import FRESH_MS

from .part import Part

_log = logging.getLogger("shared.gateway")

LISTING_SECONDS = 5.0
"""How long a server may take to list all that it has of a kind."""
PATIENCE_SECONDS = 30.0
"""For how long one that has not listed it is not asked again."""
MAX_PAGES = 1_000
_ROWS = {row.name: row for row in REQUESTS}


@record
class Kind:
    """What is listed: under which name, by which method, with which capability."""

    what: str
    row: Method
    key: str
    """What tells one entry from the others."""
    model: type[Wire]


TOOLS = Kind("tools", _ROWS["tools/list"], "name", Tool)
PROMPTS = Kind("prompts", _ROWS["prompts/list"], "name", Prompt)
TEMPLATES = Kind("resourceTemplates", _ROWS["resources/templates/list"], "uriTemplate", ResourceTemplate)


@record
class Told:
    """A whole list, as it was told."""

    entries: list[dict[str, Any]]
    fresh_ms: int = FRESH_MS
    """For how long clients may keep it."""
    is_public: bool = True
    """Whether anyone may."""


_NOTHING = Told([])


class Roll:
    """The list of one `kind` of one server."""

    def __init__(self, part: Part, kind: Kind) -> None:
        self.part = part
        self.kind = kind
        self.last = _NOTHING
        """What was told last, to anybody; it stands while the server is closed."""
        self._last_of: WeakKeyDictionary[ServerSession, Told] = WeakKeyDictionary()
        self.is_fresh = False
        """Whether it is the list of today."""
        self.is_missing = False
        """Whether the server did not list it when it was asked last."""
        self._is_refused = False
        self._age = self._attempts = 0
        self._patience = float("-inf")
        self._patience_of: WeakKeyDictionary[ServerSession, float] = WeakKeyDictionary()
        self._forgiven = float("-inf")
        """When it was asked again before its time, since it had told of a change."""
        self._asking = anyio.Lock()

    def forget(self, *, is_new: bool = False) -> None:
        """It is another one by now, or may be; who asks next is told anew. Where it took its time before it is asked
        again at once, but for a server that is not new no more often than without a change: one that tells of changes
        without an end would have all wait each time."""
        self.is_fresh = False
        self._age += 1
        now = anyio.current_time()
        was_late = self._patience > now or any(until > now for until in self._patience_of.values())
        if is_new or (was_late and now >= self._forgiven + PATIENCE_SECONDS):
            self._forgiven = self._forgiven if is_new else now
            self._patience = float("-inf")
            self._patience_of.clear()

    def known(self, context: Context[Any]) -> Told:
        """What the client of `context` was told last, as far as that is known."""
        return self._last_of.get(context.link.session, self.last) if self._last_of else self.last

    def had(self, name: str) -> bool:
        """Whether `name` stood in it before the server closed, or failed to list it."""
        return self.is_gone and any(entry[self.kind.key] == name for entry in self.last.entries)

    @property
    def is_gone(self) -> bool:
        """Whether the server is closed, or fails to list it, so that nothing of it is shown."""
        return self.part.running is None or self.is_missing

    async def told(self, context: Context[Any]) -> Told:
        """The list of today, for the client of `context`; the last one where it does not come in time, and nothing
        where the server fails."""
        part = self.part
        if not part.has(self.kind.row.capability[0]):
            return _NOTHING
        if part.differs_by_client:
            until = self._patience
            if self._has_own(context):
                until = self._patience_of.get(context.link.session, float("-inf"))
            is_due = anyio.current_time() >= until
            return await self._learn(context) if is_due else self._shown(context)
        if not self.is_fresh:
            attempts = self._attempts
            async with self._asking:
                # Who waited for another one's attempt makes none.
                if self._attempts == attempts and anyio.current_time() >= self._patience:
                    await self._learn(context)
        return self._shown(context)

    def _shown(self, context: Context[Any]) -> Told:
        if self.part.differs_by_client:
            # What another client was told may be about that one.
            return self._last_of.get(context.link.session, _NOTHING)
        return _NOTHING if self._is_refused else self.known(context)

    def _has_own(self, context: Context[Any]) -> bool:
        return self.part.differs_by_client and context.peer.lasts

    async def _learn(self, context: Context[Any]) -> Told:
        age, told = self._age, None
        with anyio.move_on_after(LISTING_SECONDS) as waiting, suppress(McpError, InputRequired):
            told = await _whole(self.part, self.kind, context)
        self._attempts += 1
        self.is_missing, self._is_refused = told is None, told is None and not waiting.cancelled_caught
        if told is None:
            if waiting.cancelled_caught:
                until = anyio.current_time() + PATIENCE_SECONDS
                if self._has_own(context):
                    self._patience_of[context.link.session] = until
                else:
                    self._patience = until
            return _NOTHING if self._is_refused else self._shown(context)
        self.last, self.is_fresh = told, self._age == age
        if self._has_own(context):
            self._last_of[context.link.session] = told
        return told


async def _whole(part: Part, kind: Kind, context: Context[Any]) -> Told:
    """All pages of a list. Raises as `Part.ask` does, and InvalidResult for what is no list."""
    entries: dict[str, dict[str, Any]] = {}
    fresh_ms, is_public, cursor = FRESH_MS, True, None
    asked: set[str | None] = {None}
    for _ in range(MAX_PAGES):
        page = await part.ask(context, kind.row, ListParams(cursor=cursor))
        found = page.get(kind.what)
        if not isinstance(found, list):
            raise InvalidResult(kind.row.name, kind.what, "is not a list", dict(page))
        for entry in sound(kind.model, found):
            entries.setdefault(entry[kind.key], entry)
        # What says nothing of this, as servers of the handshake era, is neither for long nor for anyone.
        fresh_ms = min(fresh_ms, fresh_ms_of(page))
        is_public = is_public and page.get("cacheScope") == "public"
        cursor = cursor_in(page)
        if cursor in asked:
            # It was the last page, or the list has no end.
            break
        asked.add(cursor)
    return Told(list(entries.values()), fresh_ms, is_public)


def cursor_in(page: Mapping[str, Any]) -> str | None:
    """The cursor of the page behind this one, which may be a foreign server's; None where there is none."""
    cursor = page.get("nextCursor")
    return cursor if isinstance(cursor, str) and cursor else None


def fresh_ms_of(page: Mapping[str, Any]) -> int:
    """For how many ms clients may keep a page, which may be a foreign server's; 0 where it does not say."""
    said = page.get("ttlMs")
    return said if isinstance(said, int) and said >= 0 else 0


def sound(model: type[Wire], entries: Iterable[Any]) -> list[dict[str, Any]]:
    """Those entries that are what they should be. Clients refuse a whole list for one that is not, and here it would
    be that of other servers too."""
    return [one for one in entries if isinstance(one, dict) and _is_sound(model, one)]


def _is_sound(model: type[Wire], entry: dict[str, Any]) -> bool:
    try:
        model.model_validate(entry)
    except ValidationError as error:
        _log.info("an entry is left out of the list of all servers: %s", first_fault(error))
        return False
    return True

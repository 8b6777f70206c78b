"""`Guard`: comparison of the tools of one run of a server with their pins.

Lists for clients are compared entry by entry. If a called tool is not known from a list, all tools are listed first,
in the session that the call will use. After a start, and after a change that the server announces, no tools are
known.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from shared.errors import ToolError, UnknownTool
from shared.protocol.identity import LogMessage
from shared.protocol.session.events import Change
from shared.server.dispatch.connection import Connection
from shared.server.run import Run
from shared.text import join_lines

from .names import Rules
from .pins import Pins, definition_of, digest_of

log = logging.getLogger("shared.gateway")

_CONDITION = "pins"
_MAX_TRIES = 3
"""Maximum number of attempts to list the tools while they change; the last list is used."""
_MAX_LOGGED = 1_000
"""Maximum number of withheld tools that are remembered as logged; a server may produce new ones endlessly."""
_MAX_NAMED_TOOLS = 5
"""Maximum number of tools named in a message."""

_NOT_WRITTEN = "%s: its tools are pinned only until this program ends, because %s can't be written: %s"

Tools = list[dict[str, Any]]
Listing = Callable[[], Awaitable[Tools]]
"""Lists all tools of the server, in the session of a call."""


class Guard:
    """The state of the tools of one run. It listens to the changes of that run, and must be used in its event
    loop."""

    def __init__(self, name: str, rules: Rules, pins: Pins) -> None:
        """`name` is the operator's name for the server."""
        self.version = 0
        """The number of times that the tools have changed; a listing passes the value from before it began."""
        self._name = name
        self._rules = rules
        self._pins = pins
        self._running: Run[Any] | None = None
        self._matching: set[str] = set()
        self._withheld: dict[str, str] = {}
        """By the name of each tool that differs from its pin, a mark that distinguishes it from others of that
        name."""
        self._is_complete = False
        self._logged: dict[str, str] = {}
        """The marks of the tools that were logged as withheld."""
        self._turns: dict[Connection, anyio.Lock] = {}
        """The lock of each connection: one of its calls lists the tools for all of them. No call waits for another
        connection, whose session may hang."""

    def on_change(self, change: Change) -> None:
        """Invalidate all tools if they have changed."""
        if change.what == "tools":
            self.version += 1
            self._matching, self._withheld, self._is_complete = set(), {}, False

    def announce(self, message: LogMessage) -> None:
        """Ignore the message: it is not about tools."""

    async def begin(self, running: Run[Any], link: Connection, listing: Listing, *, shows_pages: bool) -> None:
        """Pin all tools at first use, and load pins accepted since then. `link` is the connection of the call;
        `shows_pages` is true if its client shows pages. Raises the same errors as `listing`."""
        if self._running is None:
            self._running = running
            running.changes.join(self)
        if self._pins.refresh():
            running.changes.tools()
        if self._pins.is_new:
            async with self._listing_turn(link):
                if self._pins.is_new:
                    self._pin(await listing(), shows_pages=shows_pages)

    def select_matching(self, tools: Tools, version: int) -> Tools:
        """Return the tools of a page, listed at that `version`, whose definitions match their pins."""
        wrong = {
            tool["name"]: f"{digest_of(tool)} {definition_of(tool).get('_meta')}"
            for tool in tools
            if not self._pins.matches(tool)
        }
        try:
            self._pins.learn_pages([tool for tool in tools if tool["name"] not in wrong])
        except OSError as error:
            log.warning(_NOT_WRITTEN, self._name, self._pins.path, error.strerror)
        if version == self.version:
            names = {tool["name"] for tool in tools}
            self._matching = (self._matching | names) - wrong.keys()
            self._withheld = {name: mark for name, mark in self._withheld.items() if name not in names} | wrong
        fresh = [name for name, mark in wrong.items() if self._logged.get(name) != mark]
        logged = {name: digest for name, digest in self._logged.items() if name not in self._matching} | wrong
        self._logged = dict(list(logged.items())[-_MAX_LOGGED:])
        if fresh:
            log.warning(
                "%s; accept with: mcp-server-bundle pin %s --accept", self._withheld_message(fresh), self._name
            )
        if self._running is not None and self._logged:
            self._running.conditions.begin(_CONDITION, "warning", self._withheld_message(list(self._logged)))
        elif self._running is not None:
            self._running.conditions.end(_CONDITION)
        return [tool for tool in tools if tool["name"] not in wrong]

    async def check(self, name: str, shown_name: str, link: Connection, listing: Listing) -> None:
        """Check that the server's tool `name`, which the client knows as `shown_name`, is allowed. If it is unknown,
        all tools are listed for the call on `link`.

        Raises ToolError if the tool is withheld, UnknownTool if the server has no such tool, and the same errors as
        `listing`.
        """
        if not self._is_known(name):
            async with self._listing_turn(link):
                await self._list(name, listing)
        if name in self._withheld:
            fault = "is not pinned" if self._pins.digest(name) is None else "changed since it was pinned"
            raise ToolError(
                f"the definition of {shown_name[:100]} {fault}; "
                f"its operator can accept it with: mcp-server-bundle pin {self._name} --accept"
            )
        if name not in self._matching:
            raise UnknownTool(f"unknown tool: {shown_name[:100]}")

    @asynccontextmanager
    async def _listing_turn(self, link: Connection) -> AsyncIterator[None]:
        lock = self._turns.setdefault(link, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._turns.pop(link, None)

    def _is_known(self, name: str) -> bool:
        if name in self._matching or name in self._withheld:
            return True
        # A pinned tool that was not listed may be listed in another session.
        return self._is_complete and self._pins.digest(name) is None

    async def _list(self, name: str, listing: Listing) -> None:
        tools: Tools = []
        for _ in range(_MAX_TRIES):
            if self._is_known(name):
                return
            version, tools = self.version, await listing()
            if version == self.version:
                break
        self.select_matching(
            [tool for tool in tools if self._rules.shown_name(tool["name"]) is not None], self.version
        )
        self._is_complete = True

    def _pin(self, tools: Tools, *, shows_pages: bool) -> None:
        # Another call may have been faster, or the server is not ready and has no tools yet.
        if not tools or not self._pins.is_new:
            return
        try:
            self._pins.record(tools, shows_pages=shows_pages)
        except OSError as error:
            log.warning(_NOT_WRITTEN, self._name, self._pins.path, error.strerror)
        else:
            log.info("%s: %d tools are pinned in %s", self._name, len(tools), self._pins.path)

    def _withheld_message(self, names: list[str]) -> str:
        shown_name = ", ".join(join_lines(name)[:100] for name in names[:_MAX_NAMED_TOOLS])
        more = f" and {len(names) - _MAX_NAMED_TOOLS} more" if len(names) > _MAX_NAMED_TOOLS else ""
        return f"{self._name}: withheld, because their definitions do not match the pins: {shown_name}{more}"

"""`Guard`: compares the tools of one run of a server with their pins.

Tools are compared when they are listed for a client. If a client calls a tool that was not listed since the server
last announced a change, all tools are listed first, in the session that the call will use.
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
_MAX_ATTEMPTS = 3
"""Maximum number of attempts to list the tools if they change during the request; then the last list is used."""
_MAX_LOGGED = 1_000
"""Maximum number of withheld tools remembered as logged: a server may produce new ones endlessly."""
_MAX_NAMED_TOOLS = 5
"""Maximum number of tools that a message names."""

_NOT_WRITTEN = "%s: its tools are pinned only until this program ends, because %s can't be written: %s"

Tools = list[dict[str, Any]]
ListTools = Callable[[], Awaitable[Tools]]
"""Lists all tools of the server, in the session of a call."""


class Guard:
    """Which tools of one run match their pins. It listens to the changes of that run, and must be used in its event
    loop."""

    def __init__(self, name: str, rules: Rules, pins: Pins) -> None:
        """`name` is the operator's name for the server."""
        self.version = 0
        """How often the tools have changed. It is read before tools are listed, so that the result is ignored if the
        tools have changed since then."""
        self._name = name
        self._rules = rules
        self._pins = pins
        self._running: Run[Any] | None = None
        self._matching: set[str] = set()
        self._withheld: dict[str, str] = {}
        """The tools that differ from their pins: the fingerprint of each definition, by the name of the tool."""
        self._is_complete = False
        self._logged: dict[str, str] = {}
        """The fingerprints of the tools that were logged as withheld, by name."""
        self._listing_locks: dict[Connection, anyio.Lock] = {}
        """A lock for each connection with calls that need the list of tools: one of them fetches it for all. Calls
        over other connections don't wait for it, since its session may hang."""

    def on_change(self, change: Change) -> None:
        """Invalidate all tools if they have changed."""
        if change.kind == "tools":
            self.version += 1
            self._matching, self._withheld, self._is_complete = set(), {}, False

    def announce(self, message: LogMessage) -> None:
        """Ignore a log message: it does not concern the tools."""

    async def prepare(self, run: Run[Any], link: Connection, list_tools: ListTools, *, shows_apps: bool) -> None:
        """Prepare for a call over `link`: if nothing is pinned yet, pin all tools; if the file of the pins has
        changed, read it again. `shows_apps` is true if the client supports MCP Apps. Raises the same errors as
        `list_tools`."""
        if self._running is None:
            self._running = run
            run.changes.join(self)
        if self._pins.refresh():
            run.changes.tools()
        if self._pins.is_new:
            async with self._listing_lock(link):
                if self._pins.is_new:
                    self._pin(await list_tools(), shows_apps=shows_apps)

    def select_matching(self, tools: Tools, version: int) -> Tools:
        """Return those of the `tools` that match their pins, and store which do not. `version` is the value of
        `Guard.version` before the tools were listed."""
        mismatched = {
            tool["name"]: f"{digest_of(tool)} {definition_of(tool).get('_meta')}"
            for tool in tools
            if not self._pins.matches(tool)
        }
        try:
            self._pins.pin_first_pages([tool for tool in tools if tool["name"] not in mismatched])
        except OSError as error:
            log.warning(_NOT_WRITTEN, self._name, self._pins.path, error.strerror)
        if version == self.version:
            names = {tool["name"] for tool in tools}
            self._matching = (self._matching | names) - mismatched.keys()
            self._withheld = {name: mark for name, mark in self._withheld.items() if name not in names} | mismatched
        newly_withheld = [name for name, mark in mismatched.items() if self._logged.get(name) != mark]
        logged = {name: digest for name, digest in self._logged.items() if name not in self._matching} | mismatched
        self._logged = dict(list(logged.items())[-_MAX_LOGGED:])
        if newly_withheld:
            log.warning(
                "%s; accept with: mcp-server-bundle pin %s --accept",
                self._withheld_message(newly_withheld),
                self._name,
            )
        if self._running is not None and self._logged:
            self._running.conditions.begin(_CONDITION, "warning", self._withheld_message(list(self._logged)))
        elif self._running is not None:
            self._running.conditions.end(_CONDITION)
        return [tool for tool in tools if tool["name"] not in mismatched]

    async def check(self, name: str, shown_name: str, link: Connection, list_tools: ListTools) -> None:
        """Check that the definition of the server's tool `name`, which the client sees as `shown_name`, matches its
        pin. If the definition is not known, list all tools first, once for all calls over `link`.

        Raises ToolError if the tool is withheld, UnknownTool if the server has none, and the errors of `list_tools`.
        """
        if not self._is_known(name):
            async with self._listing_lock(link):
                await self._list(name, list_tools)
        if name in self._withheld:
            fault = "is not pinned" if self._pins.digest(name) is None else "changed since it was pinned"
            raise ToolError(
                f"the definition of {shown_name[:100]} {fault}; "
                f"its operator can accept it with: mcp-server-bundle pin {self._name} --accept"
            )
        if name not in self._matching:
            raise UnknownTool(f"unknown tool: {shown_name[:100]}")

    @asynccontextmanager
    async def _listing_lock(self, link: Connection) -> AsyncIterator[None]:
        lock = self._listing_locks.setdefault(link, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._listing_locks.pop(link, None)

    def _is_known(self, name: str) -> bool:
        if name in self._matching or name in self._withheld:
            return True
        # A pinned tool that was not listed may exist in another session, so the tools must be listed again.
        return self._is_complete and self._pins.digest(name) is None

    async def _list(self, name: str, list_tools: ListTools) -> None:
        tools: Tools = []
        for _ in range(_MAX_ATTEMPTS):
            if self._is_known(name):
                return
            version, tools = self.version, await list_tools()
            if version == self.version:
                break
        self.select_matching(
            [tool for tool in tools if self._rules.shown_name(tool["name"]) is not None], self.version
        )
        self._is_complete = True

    def _pin(self, tools: Tools, *, shows_apps: bool) -> None:
        # Another call may have pinned the tools while they were listed. A server without tools may not be ready yet.
        if not tools or not self._pins.is_new:
            return
        try:
            self._pins.record(tools, shows_apps=shows_apps)
        except OSError as error:
            log.warning(_NOT_WRITTEN, self._name, self._pins.path, error.strerror)
        else:
            log.info("%s: %d tools are pinned in %s", self._name, len(tools), self._pins.path)

    def _withheld_message(self, names: list[str]) -> str:
        listed = ", ".join(join_lines(name)[:100] for name in names[:_MAX_NAMED_TOOLS])
        more = f" and {len(names) - _MAX_NAMED_TOOLS} more" if len(names) > _MAX_NAMED_TOOLS else ""
        return f"{self._name}: withheld, because their definitions do not match the pins: {listed}{more}"

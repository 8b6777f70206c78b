"""`rules`: the extension that enforces an operator's rules for a server, regardless of the handlers of its methods.

    bridge(upstream, extensions=[rules(Rules(deny=("delete_*",), seconds=60), pins=Pins(path), name="github")])

A denied tool does not exist: it is not listed, and a call of it is answered like any unknown name. The pages of a
list are the server's own pages without the hidden entries.
"""

import logging
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from shared.errors import InvalidParams, PeerError, RpcError, ToolError, UnknownTool
from shared.extensions.apps import shows_apps
from shared.protocol.methods import REQUESTS, Method
from shared.protocol.types.tools import CallToolParams, ListParams, named_tools
from shared.server.dispatch.context import Context
from shared.server.extension import Extension
from shared.server.features import Handler
from shared.server.results import drop_large_view, limit_size
from shared.server.run import Run

from .guard import Guard, Listing, Tools
from .names import Rules
from .pins import Pins

log = logging.getLogger("shared.gateway")

_LIST, _CALL = "tools/list", "tools/call"
_OF_TASKS = "tasks/"
_LIST_ROW = next(row for row in REQUESTS if row.name == _LIST)
_MAX_EMPTY_PAGES = 20
"""Maximum number of pages without visible entries that are skipped for one request; after that, the client requests
the next page."""
_MAX_PAGES = 1_000
"""The number of pages after which a list counts as endless."""


def rules(server_rules: Rules, *, pins: Pins | None = None, name: str = "server") -> Extension[Any]:
    """Return the extension for one server, which its operator calls `name`. With `pins`, tools whose definitions
    differ from the pinned ones are withheld. It must be the last extension that handles tools."""
    runs = [_Run(server_rules, pins, name)]

    def around(method: Method, handler: Handler) -> Handler:
        # A run calls this for both methods of tools before its first call: a second call for the same method comes
        # from the next run.
        if method.name in runs[-1].handlers:
            runs[-1] = _Run(server_rules, pins, name)
        return runs[-1].around(method, handler)

    return Extension("rules", around=around)


class _Run:
    """The rules as applied in one run of the server."""

    def __init__(self, server_rules: Rules, pins: Pins | None, name: str) -> None:
        self.handlers: dict[str, Handler] = {}
        """The original handlers of the methods of tools."""
        self._name = name
        self._rules = server_rules
        self._has_warned = False
        self._guard = None if pins is None else Guard(name, server_rules, pins)

    def around(self, method: Method, handler: Handler) -> Handler:
        """Return the handler of `method` within the rules."""
        if method.name in (_LIST, _CALL):
            self.handlers[method.name] = handler
        # Results of tasks are already within the limits of their call.
        if method.is_stream or method.built_in or method.name.startswith(_OF_TASKS):
            return handler
        if self._rules.affect_tools or self._guard is not None:
            own: dict[str, Handler] = {_LIST: self._list, _CALL: self._call}
            handler = own.get(method.name, handler)
        if self._rules.seconds is not None or self._rules.result_bytes is not None:
            handler = _limit(handler, method, self._rules.seconds, self._rules.result_bytes)
        return handler

    async def _list(self, running: Run[Any], context: Context[Any], params: ListParams) -> dict[str, Any]:
        if self._guard is not None:
            listing = self._listing(running, context)
            await self._guard.begin(running, context.link, listing, shows_pages=shows_apps(context))
        result = await self._page(running, context, params)
        for _ in range(_MAX_EMPTY_PAGES):
            cursor = result.get("nextCursor")
            if result["tools"] or cursor is None:
                break
            result = await self._page(running, context, params.model_copy(update={"cursor": cursor}))
        return result

    async def _page(self, running: Run[Any], context: Context[Any], params: ListParams) -> dict[str, Any]:
        version = 0 if self._guard is None else self._guard.version
        result = await self.handlers[_LIST](running, context, params)
        tools = [tool for _, tool in named_tools(result)]
        replaced = next((tool["name"] for tool in tools if self._rules.is_replaced(tool["name"])), None)
        if replaced is not None and not self._has_warned:
            self._has_warned = True
            log.warning("%s: its tool %s is withheld: another tool was renamed to that", self._name, replaced)
        tools = [tool for tool in tools if self._rules.shown_name(tool["name"]) is not None]
        if self._guard is not None:
            tools = self._guard.select_matching(tools, version)
        return {**result, "tools": [tool for tool in map(self._rules.apply, tools) if tool is not None]}

    async def _call(self, running: Run[Any], context: Context[Any], params: CallToolParams) -> dict[str, Any]:
        name = self._rules.original_name(params.name)
        if name is None:
            raise UnknownTool(f"unknown tool: {params.name[:100]}")
        # A later round continues a call that has already been checked.
        if self._guard is not None and context.call.round.number == 1:
            listing = self._listing(running, context)
            await self._guard.begin(running, context.link, listing, shows_pages=shows_apps(context))
            await self._guard.check(name, params.name, context.link, listing)
        try:
            result: dict[str, Any] = await self.handlers[_CALL](
                running, context, params.model_copy(update={"name": name})
            )
        except PeerError as error:
            # The server's own error may name tools that are hidden here, or the old names of renamed ones.
            if self._rules.affect_tools and error.code == InvalidParams.code:
                listed = await self._listing(running, context)()
                if all(tool["name"] != name for tool in listed):
                    raise UnknownTool(f"unknown tool: {params.name[:100]}") from None
            raise
        return result

    def _listing(self, running: Run[Any], context: Context[Any]) -> Listing:
        """Return a function that lists all tools, in the session of the call of `context`."""

        async def list_all() -> Tools:
            tools: Tools = []
            cursor: str | None = None
            for _ in range(_MAX_PAGES):
                params = ListParams(cursor=cursor)
                inner = replace(context, call=context.call.make_inner(_LIST_ROW, params))
                result = await self.handlers[_LIST](running, inner, params)
                tools += (tool for _, tool in named_tools(result))
                before, cursor = cursor, result.get("nextCursor")
                if cursor is None or cursor == before:
                    break
            return tools

        return list_all


def _limit(handler: Handler, method: Method, seconds: float | None, max_bytes: int | None) -> Handler:
    """Wrap `handler` with limits of time and size."""

    async def handle(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
        with nullcontext() if seconds is None else context.link.calls.limit_time(context.call, seconds):
            result: dict[str, Any] = await handler(running, context, params)
        if max_bytes is None:
            return result
        try:
            return limit_size(drop_large_view(result, max_bytes), max_bytes)
        except ToolError as error:
            raise (error if method.name == _CALL else RpcError(str(error))) from None

    return handle

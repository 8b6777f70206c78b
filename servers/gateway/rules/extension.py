"""`rules`: the extension that enforces an operator's rules for a server, by wrapping the handlers of methods.

    bridge(upstream, extensions=[rules(Rules(deny=("delete_*",), seconds=60), pins=Pins(path), name="github")])

For clients, a denied tool does not exist: it is not listed, and calls get the error for an unknown tool. A page of
the list is a page of the server's list without the hidden tools.
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

from .guard import Guard, ListTools, Tools
from .names import Rules
from .pins import Pins

log = logging.getLogger("shared.gateway")

_LIST, _CALL = "tools/list", "tools/call"
_TASKS_PREFIX = "tasks/"
_LIST_ROW = next(row for row in REQUESTS if row.name == _LIST)
_MAX_EMPTY_PAGES = 20
"""Maximum number of pages without visible tools that are skipped for one request; after that, the client gets an
empty page and requests the next."""
_MAX_PAGES = 1_000
"""The number of pages after which a list counts as endless."""


def rules(server_rules: Rules, *, pins: Pins | None = None, name: str = "server") -> Extension[Any]:
    """Return the extension for one server, which the operator calls `name`. With `pins`, tools whose definitions
    differ from the pinned ones are withheld. It must be the last of the server's extensions that handle tools, so
    that it sees the tools of all."""
    runs = [_RunRules(server_rules, pins, name)]

    def wrap(method: Method, handler: Handler) -> Handler:
        # Each run of the server calls this once per method, before its first call. So a second call for the same
        # method comes from the next run, which needs a state of its own.
        if method.name in runs[-1].handlers:
            runs[-1] = _RunRules(server_rules, pins, name)
        return runs[-1].wrap(method, handler)

    return Extension("rules", around=wrap)


class _RunRules:
    """The rules as applied in one run of the server."""

    def __init__(self, server_rules: Rules, pins: Pins | None, name: str) -> None:
        self.handlers: dict[str, Handler] = {}
        """The handlers of `tools/list` and `tools/call` without the rules."""
        self._name = name
        self._rules = server_rules
        self._has_warned = False
        self._guard = None if pins is None else Guard(name, server_rules, pins)

    def wrap(self, method: Method, handler: Handler) -> Handler:
        """Return `handler`, that of `method`, with the rules applied."""
        if method.name in (_LIST, _CALL):
            self.handlers[method.name] = handler
        # Requests about a task have no limits here: the limits applied to the call that became the task.
        if method.is_stream or method.built_in or method.name.startswith(_TASKS_PREFIX):
            return handler
        if self._rules.affect_tools or self._guard is not None:
            own: dict[str, Handler] = {_LIST: self._list, _CALL: self._call}
            handler = own.get(method.name, handler)
        if self._rules.seconds is not None or self._rules.result_bytes is not None:
            handler = _with_limits(handler, method, self._rules.seconds, self._rules.result_bytes)
        return handler

    async def _list(self, run: Run[Any], context: Context[Any], params: ListParams) -> dict[str, Any]:
        if self._guard is not None:
            list_tools = self._tool_lister(run, context)
            await self._guard.prepare(run, context.link, list_tools, shows_apps=shows_apps(context))
        result = await self._page(run, context, params)
        for _ in range(_MAX_EMPTY_PAGES):
            cursor = result.get("nextCursor")
            if result["tools"] or cursor is None:
                break
            result = await self._page(run, context, params.model_copy(update={"cursor": cursor}))
        return result

    async def _page(self, run: Run[Any], context: Context[Any], params: ListParams) -> dict[str, Any]:
        version = 0 if self._guard is None else self._guard.version
        result = await self.handlers[_LIST](run, context, params)
        tools = [tool for _, tool in named_tools(result)]
        replaced = next((tool["name"] for tool in tools if self._rules.is_replaced(tool["name"])), None)
        if replaced is not None and not self._has_warned:
            self._has_warned = True
            log.warning("%s: its tool %s is withheld: another tool was renamed to that", self._name, replaced)
        tools = [tool for tool in tools if self._rules.shown_name(tool["name"]) is not None]
        if self._guard is not None:
            tools = self._guard.select_matching(tools, version)
        return {**result, "tools": [tool for tool in map(self._rules.apply, tools) if tool is not None]}

    async def _call(self, run: Run[Any], context: Context[Any], params: CallToolParams) -> dict[str, Any]:
        name = self._rules.original_name(params.name)
        if name is None:
            raise UnknownTool(f"unknown tool: {params.name[:100]}")
        # Later rounds continue a call that was checked in its first round.
        if self._guard is not None and context.call.round.number == 1:
            list_tools = self._tool_lister(run, context)
            await self._guard.prepare(run, context.link, list_tools, shows_apps=shows_apps(context))
            await self._guard.check(name, params.name, context.link, list_tools)
        try:
            result: dict[str, Any] = await self.handlers[_CALL](
                run, context, params.model_copy(update={"name": name})
            )
        except PeerError as error:
            # The server's own error for an unknown tool may list tools that are hidden here, or original names of
            # renamed ones.
            if self._rules.affect_tools and error.code == InvalidParams.code:
                listed = await self._tool_lister(run, context)()
                if all(tool["name"] != name for tool in listed):
                    raise UnknownTool(f"unknown tool: {params.name[:100]}") from None
            raise
        return result

    def _tool_lister(self, run: Run[Any], context: Context[Any]) -> ListTools:
        """Return a function that lists all tools of the server, in the session that the call of `context` uses."""

        async def list_all() -> Tools:
            tools: Tools = []
            cursor: str | None = None
            for _ in range(_MAX_PAGES):
                params = ListParams(cursor=cursor)
                inner = replace(context, call=context.call.make_inner(_LIST_ROW, params))
                result = await self.handlers[_LIST](run, inner, params)
                tools += (tool for _, tool in named_tools(result))
                before, cursor = cursor, result.get("nextCursor")
                if cursor is None or cursor == before:
                    break
            return tools

        return list_all


def _with_limits(handler: Handler, method: Method, seconds: float | None, max_bytes: int | None) -> Handler:
    """Return `handler` with a time limit for calls and a size limit for results; None means no limit."""

    async def handle(run: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
        with nullcontext() if seconds is None else context.link.calls.limit_time(context.call, seconds):
            result: dict[str, Any] = await handler(run, context, params)
        if max_bytes is None:
            return result
        try:
            return limit_size(drop_large_view(result, max_bytes), max_bytes)
        except ToolError as error:
            raise (error if method.name == _CALL else RpcError(str(error))) from None

    return handle

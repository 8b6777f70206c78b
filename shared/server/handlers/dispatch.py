"""Passes each call to its handler, and handles `tools/call`.

A tool call runs in an asyncio task of its own, unless it can be answered at once. An extension may turn it into a
task of the protocol, which the client can follow later.
"""

from collections.abc import Awaitable, Mapping
from contextvars import copy_context
from functools import cached_property, partial
from typing import Any

from ...concurrency import run_in_turns
from ...errors import UnknownName
from ...protocol.session.events import Call
from ...protocol.types.tools import CallToolParams
from ...protocol.wire.weight import HEAVY_BYTES
from ...tracing import spans
from ...tracing.trace_context import TRACEPARENT, continue_trace
from ..dispatch.connection import Connection
from ..dispatch.context import Context
from ..dispatch.hosts import budget_for
from ..dispatch.limits import CallLimits
from ..features import AtOnce, Handler
from ..run import Run
from ..tools import RegisteredTool
from .nearest_names import add_nearest_name

_EMPTY: Mapping[str, Any] = {}


class Dispatch:
    """Answers the calls of one run: it makes the context of each call, and calls its handler."""

    def __init__(self, run: Run[Any], budget: CallLimits) -> None:
        self._run = run
        self._budget = budget
        self.tools_at_once = run.features.tools.at_once
        """The names of the tools that may answer at once; the set changes with the tools."""
        self.translate = run.server.translate
        """Converts an exception to the error that the client receives."""

    def answer(self, link: Connection, call: Call) -> Awaitable[dict[str, Any]]:
        """Return the handler's awaitable result for `call`, which arrived on `link`, as part of the call's trace. The
        awaitable raises the exceptions of the handler."""
        meta = call.raw.get("_meta") if call.raw else None
        if meta and TRACEPARENT in meta:
            continue_trace(meta)
        run = self._run
        context = Context(call, link, run, run.state, link.budget or self._set_budget(link, call))
        return run.handlers[call.method.handler](run, context, call.params)

    async def add_nearest_name(self, link: Connection, call: Call, error: UnknownName) -> UnknownName:
        """Return `error`, which `call` has raised, with the most similar name that the client may see."""
        run = self._run
        context = Context(call, link, run, run.state, link.budget or self._set_budget(link, call))
        return await add_nearest_name(run, context, error)

    def answer_at_once(self, link: Connection, call: Call) -> dict[str, Any] | None:
        """Return the result of a call of a method in `at_once`, without a task; None if the call needs `answer`.
        Raises the exceptions of the handler."""
        run = self._run
        context = Context(call, link, run, run.state, link.budget or self._set_budget(link, call))
        at_once = self.at_once[call.method.handler]
        meta = call.raw.get("_meta") if call.raw else None
        if meta and TRACEPARENT in meta:
            return copy_context().run(_answer_in_trace, meta, at_once, run, context)
        return at_once(run, context, call.params)

    @cached_property
    def at_once(self) -> Mapping[str, AtOnce]:
        """The handlers that answer at once, by method. They are computed once, like `Run.handlers`, when the first
        peer connects."""
        run = self._run
        features = run.features
        at_once_by_handler = {key: value for extension in run.extensions for key, value in extension.at_once.items()}
        methods = {method.handler: method for method in features.methods}
        at_once_by_method = {}
        for name, handler in features.handlers.items():
            # A handler that replaces the one of CORE, as in a gateway, may have no counterpart that answers at once.
            at_once = run.wrap_at_once(methods[name], at_once_by_handler.get(handler))
            if at_once is not None:
                at_once_by_method[name] = at_once
        return at_once_by_method

    def _set_budget(self, link: Connection, call: Call) -> CallLimits:
        """Set and return the limits of each call on `link`."""
        # The first call determines the limits of all calls, since a connection belongs to one host.
        link.budget = budget_for(call.peer.info, self._budget)
        return link.budget


def _answer_in_trace(
    meta: Mapping[str, Any], at_once: AtOnce, run: Run[Any], context: Context[Any]
) -> dict[str, Any] | None:
    continue_trace(meta)
    return at_once(run, context, context.call.params)


def route_tasks(task_handler: Handler, handler: Handler) -> Handler:
    """Return a handler for `tools/call` that uses `task_handler` for calls that may become tasks, and `handler` for
    all others, which this hardly slows down."""

    def call(run: Run[Any], context: Context[Any], params: CallToolParams) -> Awaitable[dict[str, Any]]:
        rpc_call, tools = context.call, run.features.tools
        if "task" in (raw := rpc_call.raw or _EMPTY) or "extensions" in rpc_call.peer.capabilities:
            may_be_task = tools.task_support(params.name) is not None or raw.get("task") is not None
        else:
            may_be_task = params.name in tools.tasks_only
        return (task_handler if may_be_task else handler)(run, context, params)

    return call


def refuse_tasks(handler: AtOnce) -> AtOnce:
    """Return a handler that answers at once only calls for which `route_tasks` never uses the `task_handler`."""

    def call(run: Run[Any], context: Context[Any], params: CallToolParams) -> dict[str, Any] | None:
        rpc_call = context.call
        if "task" in (rpc_call.raw or _EMPTY) or "extensions" in rpc_call.peer.capabilities:
            return None
        return None if params.name in run.features.tools.tasks_only else handler(run, context, params)

    return call


async def call_tool(run: Run[Any], context: Context[Any], params: CallToolParams) -> dict[str, Any]:
    """Handle `tools/call`. Raises UnknownTool, InvalidArguments, ToolError, and the exceptions of the function."""
    tools = run.features.tools
    tool = tools.always_offered.get(params.name) or tools.find(params.name, run.settings)
    if context.call.weight < HEAVY_BYTES:
        arguments = tool.function.bind(params.arguments, context)
    else:
        arguments = await run_in_turns(tool.function.bind_steps(params.arguments, context))
    # Most servers have no collector of spans, and skip the cost of a span here.
    if spans.tracer is None:
        value = await tool.function.call(**arguments)
    else:
        with spans.span(*_span_fields(tool)):
            value = await tool.function.call(**arguments)
    return tool.result.to_wire(value, context.budget.result_bytes, context.call.view)


def _span_fields(tool: RegisteredTool) -> tuple[str, dict[str, str]]:
    """Return the name and the attributes of the span for a tool's function."""
    return f"execute_tool {tool.name}", {"gen_ai.tool.name": tool.name}


def call_tool_at_once(run: Run[Any], context: Context[Any], params: CallToolParams) -> dict[str, Any] | None:
    """Handle `tools/call` for a tool that can answer at once; return None if the call needs `call_tool`. Raises the
    errors of `call_tool`."""
    tools = run.features.tools
    tool = tools.always_offered.get(params.name) or tools.find(params.name, run.settings)
    at_once = tool.options.at_once
    if at_once is None:
        return None
    arguments = tool.function.bind(params.arguments, context)
    if spans.tracer is None:
        value = at_once(**arguments)
    else:
        value = spans.attempt(*_span_fields(tool), partial(at_once, **arguments))
    if value is None:
        return None
    return tool.result.to_wire(value, context.budget.result_bytes, context.call.view)

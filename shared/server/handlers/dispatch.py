"""From a call to the function that answers it: the `Work` of the calls of one run, and calls of tools.

A call of a tool runs in a task of its own, or is answered at once, or an extension makes a task of the protocol of
it.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any

from ...protocol.session.events import Call
from ...protocol.types.tools import CallToolParams
from ...tracing import spans
from ..dispatch.connection import Connection
from ..dispatch.context import Context
from ..dispatch.hosts import budget_for
from ..dispatch.limits import CallLimits
from ..extension import Passes
from ..features import Handler
from ..run import Run

AtOnce = Callable[[Connection, Call], dict[str, Any] | None]

_CALL = "tools/call"
_NOTHING: Mapping[str, Any] = {}


class Dispatch:
    """Gives each call its context and its handler."""

    def __init__(self, run: Run[Any], budget: CallLimits) -> None:
        self._run = run
        self._budget = budget
        self.tools_at_once = run.features.tools.at_once
        """The names of the tools that may have their value at once; they may change."""
        self.translate = run.server.translate
        """What the client is told of an exception."""

    def answer(self, link: Connection, call: Call) -> Awaitable[dict[str, Any]]:
        """Answers `call`, which came on `link`. Raises what the handler raises."""
        run = self._run
        context = Context(call, link, run, run.state, link.budget or self._settle_budget(link, call))
        return run.handlers[call.method.handler](run, context, call.params)

    @cached_property
    def answer_at_once(self) -> AtOnce:
        """Answers calls of tools that have their value at once, before there is a task; gives None where the call
        takes `answer`. Settled, like the handlers, when the first peer comes."""
        run, settle_budget, passes = self._run, self._settle_budget, self._passes()
        if passes is None:
            return _never

        def answer(link: Connection, call: Call) -> dict[str, Any] | None:
            for goes_by in passes:
                if not goes_by(run, call, call.params):
                    return None
            budget = link.budget or settle_budget(link, call)
            return call_tool_at_once(run, Context(call, link, run, run.state, budget), call.params)

        return answer

    def _settle_budget(self, link: Connection, call: Call) -> CallLimits:
        """What each call that comes on `link` may cost, by the first of them: a connection has one host."""
        link.budget = budget_for(call.peer.info, self._budget)
        return link.budget

    def _passes(self) -> list[Passes] | None:
        """The predicates of extensions around the calls of tools that say whether a call bypasses them; None where
        one of them lets no call bypass it."""
        features = self._run.features
        row = next((row for row in features.methods if row.handler == _CALL), None)
        # Somebody else answers the calls, as a gateway does: nothing is known of its tools.
        if row is None or features.handlers[_CALL] is not call_tool:
            return None
        passes: list[Passes] = []
        for extension in self._run.extensions:
            if extension.around is not None and extension.around(row, call_tool) is not call_tool:
                if extension.passes is None:
                    return None
                passes.append(extension.passes)
        return passes


def _never(_link: Connection, _call: Call) -> None:
    """Answers no call at once."""


def hosted_by(host: Handler, handler: Handler) -> Handler:
    """Has `host` handle the calls that may become tasks, or ask to, and `handler` all others, which take no longer
    for it: those of plain tools, and of clients that have said nothing of tasks."""

    def call(running: Run[Any], context: Context[Any], params: CallToolParams) -> Awaitable[dict[str, Any]]:
        one, tools = context.call, running.features.tools
        if "task" in (raw := one.raw or _NOTHING) or "extensions" in one.peer.capabilities:
            is_hosted = tools.task_support(params.name) is not None or raw.get("task") is not None
        else:
            is_hosted = params.name in tools.tasks_only
        return (host if is_hosted else handler)(running, context, params)

    return call


def says_nothing_of_tasks(running: Run[Any], call: Call, params: CallToolParams) -> bool:
    """Whether the call of a tool has nothing to do with tasks, which can be told at a glance."""
    has_said = "task" in (call.raw or _NOTHING) or "extensions" in call.peer.capabilities
    return not has_said and params.name not in running.features.tools.tasks_only


async def call_tool(running: Run[Any], context: Context[Any], params: CallToolParams) -> dict[str, Any]:
    """`tools/call`. Raises UnknownTool, InvalidArguments, ToolError, and what the tool's function raises."""
    tools = running.features.tools
    tool = tools.always.get(params.name) or tools.find(params.name, running.settings)
    arguments = tool.function.bind(params.arguments, context)
    # Nearly always: without a collector a span would be a context manager for nothing.
    if spans.tracer is None:
        value = await tool.function.call(**arguments)
    else:
        with spans.span(f"execute_tool {tool.name}", {"gen_ai.tool.name": tool.name}):
            value = await tool.function.call(**arguments)
    return tool.result.to_wire(value, context.budget.result_bytes, context.call.view)


def call_tool_at_once(running: Run[Any], context: Context[Any], params: CallToolParams) -> dict[str, Any] | None:
    """`tools/call` of a tool that has its value at once; None where it takes `call_tool`. Raises like that."""
    tools = running.features.tools
    tool = tools.always.get(params.name) or tools.find(params.name, running.settings)
    at_once = tool.options.at_once
    value = None if at_once is None else at_once(**tool.function.bind(params.arguments, context))
    if value is None:
        return None
    return tool.result.to_wire(value, context.budget.result_bytes, context.call.view)

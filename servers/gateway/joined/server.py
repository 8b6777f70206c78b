"""One of the joined servers: its availability, and how calls are forwarded to it.

A call is forwarded with its own context, in which only the server is replaced, so that its progress, questions, log
messages and end reach the client as if there were no gateway.

A call that asks in rounds carries the name of the server that asked. Its next round goes only to that server, and
without the answers for any other.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

from shared.errors import InputRequired, InvalidParams, MethodNotFound, RpcError, ToolError
from shared.extensions.tasks.runner import ToolTasks, tasks_of
from shared.protocol.methods import Method, find_method
from shared.protocol.session.events import Call
from shared.protocol.session.questions import Round
from shared.protocol.types.base import Params
from shared.protocol.types.resources import ListenParams, SubscriptionFilter, UriParams
from shared.protocol.types.tasks import TASKS
from shared.protocol.types.tools import TaskSupport
from shared.server.dispatch.context import Context
from shared.server.features import Handler
from shared.server.run import Run
from shared.telemetry.logs import server_name

_SERVER_KEY = "shared.gateway/of"
"""The key, in a round's state, for the name of the server that asks."""


class Member(Protocol):
    """A server that opens and closes during the run."""

    @property
    def name(self) -> str:
        """Its unique name: up to 32 letters, digits and hyphens."""

    @property
    def running(self) -> Run[Any] | None:
        """The run of the server while it is open; else None."""

    @property
    def reason(self) -> str:
        """The reason that it is not open, in text that clients may read."""

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call `on_change`, which neither waits nor raises, after it has opened and before it closes. Return a
        function that stops this."""


class Part:
    """A member, in the form in which the gateway uses it."""

    def __init__(self, member: Member, principals: str = "", *, is_foreign: bool = False) -> None:
        """`principals` is the name of the principals that are served; they may have their own run of the member.
        `is_foreign` is True for a third-party server, which may list entries that belong to another."""
        self.member = member
        self.name = member.name
        self.is_foreign = is_foreign
        self._principals = principals

    @property
    def running(self) -> Run[Any] | None:
        """The run of the server while it is open; else None."""
        running = self.member.running
        return None if running is None else running.parts.for_name(self._principals)

    @property
    def differs_by_client(self) -> bool:
        """True if its lists may differ by client."""
        running = self.running
        return running is not None and getattr(running.state, "differs_by_client", False)

    def has(self, *capability: str) -> bool:
        """Return True if it is open and declares this capability."""
        running = self.running
        return running is not None and running.identity.has(capability)

    def declares(self, uri: str) -> bool:
        """Return True if it is open and its own code declares the resource at `uri`."""
        running = self.running
        if running is None:
            return False
        return running.features.resources.is_declared(uri) or any(
            uri in extension.open_resources for extension in running.extensions
        )

    def row(self, context: Context[Any], method: str) -> Method | None:
        """Return the method with which it would serve this request from the client of `context`; None if it would
        not, or is not open."""
        running = self.running
        return None if running is None else find_method(running.method_table, method, context.peer)

    @property
    def has_tasks(self) -> bool:
        """True if it is open and calls of its tools may become tasks."""
        running = self.running
        return running is not None and TASKS in running.opened

    async def task_support(self, context: Context[Any], name: str, listed: TaskSupport | None) -> ToolTasks:
        """Return the support for tasks of its tool `name` for the call of `context`; `listed` is the support declared
        in the list."""
        running = self.running
        if running is None or TASKS not in running.opened:
            return None
        tasks = tasks_of(running)
        # The list follows its rules, which may give a tool another name than the declared one.
        return listed if tasks.support is None else await tasks.support_of(_adapt(running, context), name)

    def refusal(self, method: str) -> RpcError | ToolError:
        """Return the error for a request that can't currently be served."""
        reason = self.member.reason
        text = f"the server {self.name} is not available{': ' if reason else ''}{reason}"
        return ToolError(text) if method == "tools/call" else RpcError(text, code=-32603)

    def timeout_error(self) -> RpcError:
        """Return the error for a response that does not arrive in time."""
        return RpcError(f"the server {self.name} did not answer in time", code=-32603)

    async def forward(self, context: Context[Any], row: Method, params: Any) -> dict[str, Any]:
        """Return the server's result for a call, with these params instead of its own.

        Raises the errors that the server's own clients get, ToolError for a tool or RpcError for anything else if it
        is not open or closes during the call, and MethodNotFound if it has no handler.
        """
        running = self.running
        if running is None:
            raise self.refusal(row.name)
        handler = running.handlers.get(row.handler)
        if handler is None:
            raise MethodNotFound(f"method not found: {row.name[:100]}")
        return await self._run_handler(running, handler, context, row, params)

    async def ask(self, context: Context[Any], row: Method, params: Params) -> dict[str, Any]:
        """Send a request that the gateway itself makes for the call of `context`, and return the result.
        Raises the same errors as `forward`."""
        return await self.forward(replace(context, call=context.call.make_inner(row, params)), row, params)

    async def subscribe(self, context: Context[Any], uri: str) -> tuple[Run[Any], str]:
        """Begin a subscription for the call of `context`; return its run and its key. Raises the same errors as
        `forward`, ResourceNotFound if the resource can't be subscribed to, InvalidParams if there are too many
        subscriptions."""

        async def begin(running: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
            return {"key": await running.changes.subscribe(context, uri)}

        params: Params
        if context.peer.has_handshake:
            method, params = "resources/subscribe", UriParams(uri=uri)
        else:
            filter_ = SubscriptionFilter(resource_subscriptions=[uri])
            method, params = "subscriptions/listen", ListenParams(notifications=filter_)
        running, row = self.running, self.row(context, method)
        if running is None or row is None:
            raise self.refusal("resources/subscribe")
        handler = running.wrap(row, begin)
        return running, (await self._run_handler(running, handler, context, row, params))["key"]

    async def _run_handler(
        self, running: Run[Any], handler: Handler, context: Context[Any], row: Method, params: Any
    ) -> dict[str, Any]:
        call = context.call
        round_ = call.round
        if round_.carried is not None and (asker := asking_server(round_)) is not None:
            if asker != self.name:
                raise InvalidParams("this requestState belongs to a request that went to another server")
            # The server gets the round in the form in which it left it.
            carried = round_.carried
            call.round = Round(round_.number, {**carried["answers"], **round_.answers}, carried["carried"])
        result: dict[str, Any] | None = None
        # A server that closes cancels its work. The call itself belongs to another run, and is still answered.
        with running.calls.admit_guest() as scope, _ErrorTranslation(running, self.name, call):
            result = await handler(running, _adapt(running, context), params)
            if result is None:
                raise TypeError(f"the handler of {row.name} returned None")
        if scope.cancelled_caught or result is None:
            raise self.refusal(row.name)
        return result


def _adapt(running: Run[Any], context: Context[Any]) -> Context[Any]:
    """Return `context` adapted to a call at `running`."""
    call, budget = context.call, running.calls.budget
    if call.task is not None:
        # A call that may become a task keeps its own time limit.
        budget = budget.with_seconds(context.budget.seconds)
    return Context(call, context.link, running, running.state, budget)


class _ErrorTranslation:
    """Translates exceptions in the block to those that clients of `running` get, and adds the server's name to its
    questions and log records."""

    __slots__ = ("_before", "_call", "_name", "_running")

    def __init__(self, running: Run[Any], name: str, call: Call) -> None:
        self._running, self._name, self._call = running, name, call

    def __enter__(self) -> None:
        self._before = server_name.set(self._name)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            if isinstance(error, Exception | InputRequired | BaseExceptionGroup):
                translated = self._running.server.translate(error)
                if isinstance(translated, InputRequired):
                    # Without state of its own a round keeps the answers so far; with it they are part of the state.
                    answers = self._call.round.answers if translated.carried is None else {}
                    translated = InputRequired(
                        translated.requests,
                        {_SERVER_KEY: self._name, "carried": translated.carried, "answers": answers},
                    )
                raise translated from None
        finally:
            server_name.reset(self._before)


def absence_note(parts: Iterable[Part]) -> str:
    """Return the end of an error message, which names the unavailable parts as a possible reason; empty if all are
    available."""
    names = [part.name for part in parts if part.running is None or not part.running.hooks.is_reachable()]
    return f"; not available at the moment: {', '.join(names)}" if names else ""


def asking_server(round_: Round) -> str | None:
    """Return the name of the server whose questions this round answers; None for a first round."""
    carried = round_.carried
    return carried.get(_SERVER_KEY) if isinstance(carried, dict) else None

"""One of the joined servers: whether it is open, and how calls are forwarded to it.

A call is forwarded with the same context, in which only the server is replaced. So progress, log messages, requests
for input and the result reach the client as if there were no gateway.

If a server requests input from a stateless client, the round of the call ends (2026-07-28, multi round-trip
requests). The state that the client returns in the next round contains the name of that server, so that the answers
go to that server and no other.
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
"""The key, in the state of a round, for the name of the server that requested input."""


class Member(Protocol):
    """A server that the gateway joins. It may open and close while the gateway is open."""

    @property
    def name(self) -> str:
        """The unique name of the server: up to 32 letters, digits and hyphens."""

    @property
    def running(self) -> Run[Any] | None:
        """The run of the server while it is open; else None."""

    @property
    def reason(self) -> str:
        """Why the server is not open, in words for clients; empty if unknown."""

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call `on_change` after the server has opened and before it closes. `on_change` must neither wait nor raise.
        Return a function that stops these calls."""


class JoinedServer:
    """A member, with everything that the gateway needs from it."""

    def __init__(self, member: Member, principals: str = "", *, is_third_party: bool = False) -> None:
        """`principals` is the name of the principals that this run of the gateway serves; the member may have a
        separate run for them. A third-party server may list entries that belong to another server."""
        self.member = member
        self.name = member.name
        self.is_third_party = is_third_party
        self._principals = principals

    @property
    def running(self) -> Run[Any] | None:
        """The run of the server while it is open; else None."""
        run = self.member.running
        return None if run is None else run.parts.for_name(self._principals)

    @property
    def needs_fresh_lists(self) -> bool:
        """True if the server is open and each request for a list must reach it (see `Bridge.needs_fresh_lists`)."""
        run = self.running
        return run is not None and getattr(run.state, "needs_fresh_lists", False)

    def has_capability(self, *capability: str) -> bool:
        """Return True if the server is open and declares this capability, a path of keys."""
        run = self.running
        return run is not None and run.identity.has(capability)

    def declares(self, uri: str) -> bool:
        """Return True if the server is open and its own code declares the resource at `uri`."""
        run = self.running
        if run is None:
            return False
        return run.features.resources.is_declared(uri) or any(
            uri in extension.open_resources for extension in run.extensions
        )

    def find_method(self, context: Context[Any], method: str) -> Method | None:
        """Return the declaration of the method called `method`; None if the server is not open, or does not have it
        for the client of `context`."""
        run = self.running
        return None if run is None else find_method(run.method_table, method, context.peer)

    @property
    def supports_tasks(self) -> bool:
        """True if the server is open and calls of its tools may become tasks."""
        run = self.running
        return run is not None and TASKS in run.opened

    async def task_support(self, context: Context[Any], name: str, listed: TaskSupport | None) -> ToolTasks:
        """Return how tasks are supported for the call of `context`, of the tool that the server calls `name`.
        `listed` is what the list of tools declares."""
        run = self.running
        if run is None or TASKS not in run.opened:
            return None
        tasks = tasks_of(run)
        # If the server does not decide for each call, use the list: an operator's rule may have renamed the tool, so
        # that the server does not know `name`.
        return listed if tasks.support is None else await tasks.support_of(_adapt(run, context), name)

    def unavailable_error(self, method: str) -> RpcError | ToolError:
        """Return the error for a call to `method` while the server is not open."""
        reason = self.member.reason
        text = f"the server {self.name} is not available{': ' if reason else ''}{reason}"
        return ToolError(text) if method == "tools/call" else RpcError(text, code=-32603)

    def timeout_error(self) -> RpcError:
        """Return the error for a request that the server did not answer in time."""
        return RpcError(f"the server {self.name} did not answer in time", code=-32603)

    async def forward(self, context: Context[Any], row: Method, params: Any) -> dict[str, Any]:
        """Return the server's result for the call of `context`, with `row` as its method and with these params.

        Raises the errors that the server's own clients get, and MethodNotFound if the server has no handler. If the
        server is not open, or closes during the call, raises ToolError for a tool and RpcError for anything else.
        """
        run = self.running
        if run is None:
            raise self.unavailable_error(row.name)
        handler = run.handlers.get(row.handler)
        if handler is None:
            raise MethodNotFound(f"method not found: {row.name[:100]}")
        return await self._run_handler(run, handler, context, row, params)

    async def ask(self, context: Context[Any], row: Method, params: Params) -> dict[str, Any]:
        """Return the server's result for a request that the gateway itself makes in order to answer the call of
        `context`. Raises the same errors as `forward`."""
        return await self.forward(replace(context, call=context.call.make_inner(row, params)), row, params)

    async def subscribe(self, context: Context[Any], uri: str) -> tuple[Run[Any], str]:
        """Begin a subscription for the call of `context`; return the run of the server and the server's key of the
        subscription. Raises the same errors as `forward`, ResourceNotFound if the resource can't be subscribed to,
        and InvalidParams if there are too many subscriptions."""

        async def begin(run: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
            return {"key": await run.changes.subscribe(context, uri)}

        params: Params
        if context.peer.has_handshake:
            method, params = "resources/subscribe", UriParams(uri=uri)
        else:
            filter_ = SubscriptionFilter(resource_subscriptions=[uri])
            method, params = "subscriptions/listen", ListenParams(notifications=filter_)
        run, row = self.running, self.find_method(context, method)
        if run is None or row is None:
            raise self.unavailable_error("resources/subscribe")
        handler = run.wrap(row, begin)
        return run, (await self._run_handler(run, handler, context, row, params))["key"]

    async def _run_handler(
        self, run: Run[Any], handler: Handler, context: Context[Any], row: Method, params: Any
    ) -> dict[str, Any]:
        call = context.call
        round_ = call.round
        if round_.carried is not None and (requester := requesting_server(round_)) is not None:
            if requester != self.name:
                raise InvalidParams("this requestState belongs to a request that went to another server")
            # Restore the state that the server sent; the gateway had wrapped it.
            carried = round_.carried
            call.round = Round(round_.number, {**carried["answers"], **round_.answers}, carried["carried"])
        result: dict[str, Any] | None = None
        # If the server closes, its work on the call is cancelled. The call itself belongs to the gateway, and gets an
        # error.
        with run.calls.admit_guest() as scope, _ErrorTranslation(run, self.name, call):
            result = await handler(run, _adapt(run, context), params)
            if result is None:
                raise TypeError(f"the handler of {row.name} returned None")
        if scope.cancelled_caught or result is None:
            raise self.unavailable_error(row.name)
        return result


def _adapt(run: Run[Any], context: Context[Any]) -> Context[Any]:
    """Return `context` for the same call at `run`, the run of another server."""
    call, budget = context.call, run.calls.budget
    if call.task is not None:
        # A call that may become a task keeps the time limit that it has at the gateway.
        budget = budget.with_seconds(context.budget.seconds)
    return Context(call, context.link, run, run.state, budget)


class _ErrorTranslation:
    """Translates exceptions in the block to the errors that clients of `run` get, and adds the server's name to
    log records and to the state of requests for input."""

    __slots__ = ("_before", "_call", "_name", "_running")

    def __init__(self, run: Run[Any], name: str, call: Call) -> None:
        self._running, self._name, self._call = run, name, call

    def __enter__(self) -> None:
        self._before = server_name.set(self._name)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            if isinstance(error, Exception | InputRequired | BaseExceptionGroup):
                translated = self._running.server.translate(error)
                if isinstance(translated, InputRequired):
                    # A server that sends no state needs the earlier answers again in the next round. A server that
                    # sends state has stored in it whatever it needs.
                    answers = self._call.round.answers if translated.carried is None else {}
                    translated = InputRequired(
                        translated.requests,
                        {_SERVER_KEY: self._name, "carried": translated.carried, "answers": answers},
                    )
                raise translated from None
        finally:
            server_name.reset(self._before)


def unavailability_note(servers: Iterable[JoinedServer]) -> str:
    """Return the end of an error message that names the unavailable servers, which may be the reason; empty if all
    are available."""
    names = [server.name for server in servers if server.running is None or not server.running.hooks.is_reachable()]
    return f"; not available at the moment: {', '.join(names)}" if names else ""


def requesting_server(round_: Round) -> str | None:
    """Return the name of the server whose requests for input this round answers; None if it answers none."""
    carried = round_.carried
    return carried.get(_SERVER_KEY) if isinstance(carried, dict) else None

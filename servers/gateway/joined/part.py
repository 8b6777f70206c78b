"""One of the servers that are joined: whether it is there, and how a call is handed on to it.

A call is handed on with its own context, of which nothing but the server is another one: so its reports, questions,
log messages and its end reach the client as they would without anything between.

A call that asks in rounds carries whose questions they are. Its next round goes there and nowhere else, and with no
other's answers.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

from shared.errors import InputRequired, InvalidParams, MethodNotFound, RpcError, ToolError
from shared.extensions.tasks.runner import ToolTasks, tasks_of
from shared.protocol.methods import Method, row_for
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

_OF = "shared.gateway/of"
"""In what a round carries: the name of the server that asks."""


class Member(Protocol):
    """A server that comes and goes."""

    @property
    def name(self) -> str:
        """What tells it from the others: up to 32 letters, digits and hyphens."""

    @property
    def running(self) -> Run[Any] | None:
        """It, while it is open."""

    @property
    def reason(self) -> str:
        """Why it is not open, in words that clients may read."""

    def watch(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Calls `heard`, which neither waits nor raises, after it has opened and before it closes, until what this
        gives is called."""


class Part:
    """A member as the others' neighbour."""

    def __init__(self, member: Member, principals: str = "", *, is_foreign: bool = False) -> None:
        """`principals` is the name of those that are served; they may have a run of the member to themselves.
        `is_foreign` is whether it is a server of others, which may list what belongs to another one."""
        self.member = member
        self.name = member.name
        self.is_foreign = is_foreign
        self._principals = principals

    @property
    def running(self) -> Run[Any] | None:
        """The server, while it is open."""
        running = self.member.running
        return None if running is None else running.parts.for_name(self._principals)

    @property
    def differs_by_client(self) -> bool:
        """Whether its lists may be others for each client."""
        running = self.running
        return running is not None and getattr(running.state, "differs_by_client", False)

    def has(self, *capability: str) -> bool:
        """Whether it is open and declares this."""
        running = self.running
        return running is not None and running.identity.has(capability)

    def declares(self, uri: str) -> bool:
        """Whether it is open, and the resource at `uri` is declared in its own code."""
        running = self.running
        if running is None:
            return False
        return running.features.resources.knows(uri) or any(uri in one.open_resources for one in running.extensions)

    def row(self, context: Context[Any], method: str) -> Method | None:
        """By which row it would serve the client of `context` such a request; None where it would not, and while it
        is not open."""
        running = self.running
        return None if running is None else row_for(running.method_table, method, context.peer)

    @property
    def has_tasks(self) -> bool:
        """Whether it is open, and calls of its tools may become tasks."""
        running = self.running
        return running is not None and TASKS in running.opened

    async def task_support(self, context: Context[Any], name: str, listed: TaskSupport | None) -> ToolTasks:
        """Whether its tool of that name, which is `listed` so, may run as a task for the call of `context`."""
        running = self.running
        if running is None or TASKS not in running.opened:
            return None
        tasks = tasks_of(running)
        # What it lists is within its rules, by which a tool may have another name than it was declared with.
        return listed if tasks.support is None else await tasks.support_of(_handed(running, context), name)

    def refusal(self, method: str) -> RpcError | ToolError:
        """Why such a request can't be served now."""
        reason = self.member.reason
        text = f"the server {self.name} is not available{': ' if reason else ''}{reason}"
        return ToolError(text) if method == "tools/call" else RpcError(text, code=-32603)

    def late(self) -> RpcError:
        """What is said where it does not answer in the time that others give it."""
        return RpcError(f"the server {self.name} does not answer in time", code=-32603)

    async def hand_on(self, context: Context[Any], row: Method, params: Any) -> dict[str, Any]:
        """What the server makes of a call, with these params in place of its own.

        Raises as the server's own clients are told, ToolError for a tool and RpcError for anything else where it is
        not open, or closes meanwhile, and MethodNotFound for what it has no handler of.
        """
        running = self.running
        if running is None:
            raise self.refusal(row.name)
        handler = running.handlers.get(row.handler)
        if handler is None:
            raise MethodNotFound(f"method not found: {row.name[:100]}")
        return await self._work(running, handler, context, row, params)

    async def ask(self, context: Context[Any], row: Method, params: Params) -> dict[str, Any]:
        """What the server answers to a request of our own with these params, made for the call of `context`. Raises
        as `hand_on` does."""
        return await self.hand_on(replace(context, call=context.call.inner(row, params)), row, params)

    async def hold(self, context: Context[Any], uri: str) -> tuple[Run[Any], str]:
        """Begins a subscription for the call of `context`; of which run it is, and its key. Raises as `hand_on` does,
        ResourceNotFound where it may not be subscribed to, InvalidParams where there are too many."""

        async def begin(running: Run[Any], context: Context[Any], params: Params) -> dict[str, Any]:
            return {"key": await running.changes.hold(context, uri)}

        params: Params
        if context.peer.lasts:
            method, params = "resources/subscribe", UriParams(uri=uri)
        else:
            wanted = SubscriptionFilter(resource_subscriptions=[uri])
            method, params = "subscriptions/listen", ListenParams(notifications=wanted)
        running, row = self.running, self.row(context, method)
        if running is None or row is None:
            raise self.refusal("resources/subscribe")
        handler = running.surrounded(row, begin)
        return running, (await self._work(running, handler, context, row, params))["key"]

    async def _work(
        self, running: Run[Any], handler: Handler, context: Context[Any], row: Method, params: Any
    ) -> dict[str, Any]:
        call = context.call
        if call.round.carried is not None:
            call.round = self._reopened(call.round)
        result: dict[str, Any] | None = None
        # A server that closes ends what is at work there. The call itself is another's, and is answered all the same.
        with running.calls.guest() as scope, _Explained(running, self.name, call):
            result = await handler(running, _handed(running, context), params)
            if result is None:
                raise TypeError(f"what handles {row.name} returned None")
        if scope.cancelled_caught or result is None:
            raise self.refusal(row.name)
        return result

    def _reopened(self, round_: Round) -> Round:
        """The round as the server has left it. Raises InvalidParams for one of another server's."""
        if asked_by(round_) is None:
            return round_
        if asked_by(round_) != self.name:
            raise InvalidParams("this requestState belongs to a request that went to another server")
        carried = round_.carried
        return Round(round_.number, {**carried["answers"], **round_.answers}, carried["carried"])


def _handed(running: Run[Any], context: Context[Any]) -> Context[Any]:
    """`context` as the call sees it at `running`: with the time that it has anyway, where it may become a task."""
    call, budget = context.call, running.calls.budget
    if call.task is not None:
        budget = budget.lasting(context.budget.seconds)
    return Context(call, context.link, running, running.state, budget)


class _Explained:
    """Has what is raised leave as what the clients of `running` are told of it, and questions with the name of who
    asks. Log lines name the server meanwhile."""

    __slots__ = ("_before", "_call", "_name", "_running")

    def __init__(self, running: Run[Any], name: str, call: Call) -> None:
        self._running, self._name, self._call = running, name, call

    def __enter__(self) -> None:
        self._before = server_name.set(self._name)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            if isinstance(error, Exception | InputRequired | BaseExceptionGroup):
                told = self._running.server.translate(error)
                if isinstance(told, InputRequired):
                    # Without anything to carry a round keeps the answers so far; with it, they are carried.
                    answers = self._call.round.answers if told.carried is None else {}
                    told = InputRequired(
                        told.requests, {_OF: self._name, "carried": told.carried, "answers": answers}
                    )
                raise told from None
        finally:
            server_name.reset(self._before)


def absent(parts: Iterable[Part]) -> str:
    """Which of them are not there, to be said behind an error that this may be the reason of; empty where all are."""
    names = [part.name for part in parts if part.running is None or not part.running.hooks.is_there()]
    return f"; not available at this time: {', '.join(names)}" if names else ""


def asked_by(round_: Round) -> str | None:
    """The name of the server whose questions this round answers; None where it is a first one."""
    carried = round_.carried
    return carried.get(_OF) if isinstance(carried, dict) else None

"""One session on a server for all clients, if the operator configures it; a command then runs as a single process.

A message from the server on the stream of a request or a task belongs to its caller. Other messages belong to the
client whose calls are in progress. If there are several such clients, notifications are dropped and questions are
refused, since they could reveal one client's activity to another client's user.
"""

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from shared.client.options import ClientOptions
from shared.client.tasks.following import TaskState
from shared.concurrency import TaskSet
from shared.errors import InternalError, PeerError
from shared.protocol.identity import LOG_LEVELS
from shared.protocol.session.client_events import Notified, ServerRequest
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.connection import Connection
from shared.server.dispatch.context import Context

from ..base import Base
from ..forwarding import caller_of, params_of, require_result
from ..log_level import SharedLevel
from ..tasks import UpstreamTasks, related_task, run_as_task, time_limit_of
from .call_relay import CallRelay
from .pending_input import PendingCalls
from .upstream_call import UpstreamCall

SHARED_CAPABILITIES: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {"listChanged": True},
}
"""The capabilities that are declared for all clients: one without a capability refuses its requests."""
MAX_VISITS = 1_000
"""Maximum number of pages to visit whose clients are remembered; the oldest are forgotten."""
_LOGGED, _VISITED = "notifications/message", "notifications/elicitation/complete"


class _AttributedCall:
    """The relay of one call: `inner`, and the client to which it belongs."""

    def __init__(self, inner: CallRelay | UpstreamCall, link: Connection, visits: dict[str, Connection]) -> None:
        self.inner = inner
        self.link = link
        self.task: str | None = None
        """The id of the server's task that the call has become, if any."""
        self._visits = visits

    async def became_task(self) -> None:
        """Called when the server has turned the call into a task."""
        await self.inner.became_task()

    def on_status(self, task: TaskState) -> None:
        """Receive the state of the task."""
        self.task = task.id
        self.inner.on_status(task)

    @property
    def can_ask(self) -> bool:
        """True if its client can be asked."""
        return isinstance(self.inner, CallRelay) or self.inner.can_ask

    async def answer(self, request: ServerRequest) -> dict[str, Any]:
        """Return the client's answer. Raises RpcError like `inner`."""
        id_ = request.params.get("elicitationId")
        if isinstance(id_, str):
            self._visits[id_] = self.link
            if len(self._visits) > MAX_VISITS:
                del self._visits[next(iter(self._visits))]
        return await self.inner.answer(request)

    def on_server_message(self, notice: Notified | Gap) -> None:
        """Forward a message to the client."""
        self.inner.on_server_message(notice)


class SharedSession:
    """Makes all calls in the session of the bridge itself, and is the relay of messages in it that belong to no call.
    It ends with `close`."""

    def __init__(self, tasks: TaskSet) -> None:
        self.options = ClientOptions(capabilities=SHARED_CAPABILITIES, relay=self)
        """The options with which the bridge opens it."""
        self.pending_calls = PendingCalls()
        """The calls whose clients have been asked a question, and will answer it in their next request."""
        self._tasks = tasks
        self.upstream_tasks = UpstreamTasks()
        """The support for tasks of the tools."""
        self._base: Base
        self._level: SharedLevel
        self._calls_in_progress: list[_AttributedCall] = []
        self._visits: dict[str, Connection] = {}
        """The clients whose users were asked to visit a page, by the id of that elicitation."""
        self._least_severe = len(LOG_LEVELS)

    def join(self, base: Base, level: SharedLevel) -> None:
        """Set `base`, the bridge's own connection to the server, and the log level of that connection."""
        self._base, self._level = base, level

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """Return the server's result. Raises the same errors as `Client.exchange`, RpcError while there is no
        session, and the errors raised by `PendingCalls` and `Context.forward_questions`."""
        if context.peer.has_handshake:
            relay = CallRelay(context, self._base.on_server_message)
            try:
                return await self._exchange(context, params_of(context, params), relay)
            finally:
                relay.close()
        call = await self.pending_calls.resume(context)
        if call is None:
            call = UpstreamCall(context, self._base.on_server_message)
            self._tasks.start(self._run_call(call, context, params_of(context, params)))
        return await self.pending_calls.round(context, call)

    def close(self) -> None:
        """Stop the calls that wait for the answers of their clients."""
        self.pending_calls.close()

    async def _run_call(self, call: UpstreamCall, context: Context[Any], params: dict[str, Any]) -> None:
        await call.run(partial(self._exchange, context, params))

    async def _exchange(
        self, context: Context[Any], params: dict[str, Any], inner: CallRelay | UpstreamCall
    ) -> dict[str, Any]:
        if not context.peer.has_handshake and context.peer.log_level is not None:
            order = LOG_LEVELS.index(context.peer.log_level)
            if order < self._least_severe:
                self._least_severe = order
                with suppress(PeerError):
                    await self._level.set_level(self, context.peer.log_level)
        client, relay = self._base.client, _AttributedCall(inner, context.link, self._visits)

        async def ask(method: str, sent: dict[str, Any]) -> dict[str, Any]:
            caller = caller_of(context, relay)
            return require_result(await client.exchange(method, sent, caller, timeout=time_limit_of(method)))

        self._calls_in_progress.append(relay)
        try:
            task_params = await self.upstream_tasks.task_param(client, context, params.get("name"))
            return await run_as_task(ask, context.call.method.name, params, task_params, relay)
        finally:
            self._calls_in_progress.remove(relay)

    # Messages of the server that belong to no call, attributed as far as possible

    async def answer(self, request: ServerRequest) -> dict[str, Any]:
        """Return the answer of the client that the request belongs to, by its task or by the calls in progress.
        Raises RpcError if it belongs to no client or may belong to several, and if the client refuses."""
        if (task := related_task(request.params)) is not None:
            for relay in self._calls_in_progress:
                if relay.task == task:
                    return await relay.answer(request)
        if not self._calls_in_progress:
            raise InternalError("no call is in progress, so there is no client to ask")
        if not self._has_one_client:
            raise InternalError("it is unknown which client this question is for")
        newest = next(
            (relay for relay in reversed(self._calls_in_progress) if relay.can_ask), self._calls_in_progress[-1]
        )
        with ExitStack() as paused:
            # Any of these may wait for the answer.
            for other in self._calls_in_progress:
                if other is not newest and isinstance(other.inner, CallRelay):
                    paused.enter_context(other.link.calls.pause_clock(other.inner.context.call))
            return await newest.answer(request)

    def on_server_message(self, notice: Notified | Gap) -> None:
        """Forward a log message to the client whose calls are in progress, and the end of a visit to the client that
        was asked to visit the page. Other messages are not handled here."""
        if isinstance(notice, Gap):
            return
        if notice.method == _LOGGED and self._has_one_client:
            self._calls_in_progress[-1].on_server_message(notice)
        elif notice.method == _VISITED:
            self.pending_calls.visiting.on_server_message(notice)
            link = self._visits.pop(str(notice.params.get("elicitationId")), None)
            if link is not None:
                link.session.notify_session(notice.method, notice.params)
                link.send_soon()

    @property
    def _has_one_client(self) -> bool:
        """True if all calls in progress belong to one client."""
        return len({relay.link for relay in self._calls_in_progress}) == 1

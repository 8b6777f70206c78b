"""One session on a server for all clients, if the operator configures that. A server that is a command then runs as a
single process.

A message from the server that names a task, or arrives on the stream of a request, belongs to the client that made
that call. All other messages belong to the client whose calls are in progress. If several clients have calls in
progress, these notifications are dropped and these requests are refused, since they could reveal one client's
activity to another client's user.
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

from ..connection import BridgeConnection
from ..forwarding import caller_of, params_of
from ..log_level import SharedLevel
from ..tasks import UpstreamTasks, related_task, run_as_task
from .call_relay import CallRelay
from .pending_input import PendingCalls
from .upstream_call import UpstreamCall

SHARED_CAPABILITIES: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {"listChanged": True},
}
"""The capabilities that are declared to the server for all clients. A client that lacks one of them refuses the
server's requests that need it."""
MAX_VISITS = 1_000
"""Maximum number of page visits for which the client is remembered; the oldest are forgotten."""
_LOGGED, _VISITED = "notifications/message", "notifications/elicitation/complete"


class _AttributedCall:
    """The relay of one call. It wraps `inner`, another relay, and adds the connection of the client that made the
    call."""

    def __init__(self, inner: CallRelay | UpstreamCall, link: Connection, visits: dict[str, Connection]) -> None:
        self.inner = inner
        self.link = link
        self.task: str | None = None
        """The id of the task that the call has become at the server, if any."""
        self._visits = visits

    async def on_became_task(self) -> None:
        """Called when the server has turned the call into a task."""
        await self.inner.on_became_task()

    def on_status(self, task: TaskState) -> None:
        """Receive the state of the task."""
        self.task = task.id
        self.inner.on_status(task)

    @property
    def can_ask_client(self) -> bool:
        """True if requests from the server can be forwarded to its client."""
        return isinstance(self.inner, CallRelay) or self.inner.can_ask_client

    async def answer(self, request: ServerRequest) -> dict[str, Any]:
        """Return the client's answer. Raises RpcError like `inner`."""
        id_ = request.params.get("elicitationId")
        if isinstance(id_, str):
            self._visits[id_] = self.link
            if len(self._visits) > MAX_VISITS:
                del self._visits[next(iter(self._visits))]
        return await self.inner.answer(request)

    def on_server_message(self, message: Notified | Gap) -> None:
        """Forward a message to the client."""
        self.inner.on_server_message(message)


class SharedSession:
    """Makes all calls in the session of the bridge's own connection, and is the relay of messages there that belong
    to no call. End it with `close`."""

    def __init__(self, tasks: TaskSet) -> None:
        self.options = ClientOptions(capabilities=SHARED_CAPABILITIES, relay=self)
        """The options with which the bridge opens its own connection."""
        self.pending_calls = PendingCalls()
        """The calls that wait for the next round of their client."""
        self._tasks = tasks
        self.upstream_tasks = UpstreamTasks()
        """Which tools support tasks."""
        self._connection: BridgeConnection
        self._level: SharedLevel
        self._calls_in_progress: list[_AttributedCall] = []
        self._visits: dict[str, Connection] = {}
        """The connections of clients whose users were asked to visit a page, by the id of that elicitation."""
        self._least_severe = len(LOG_LEVELS)

    def join(self, connection: BridgeConnection, level: SharedLevel) -> None:
        """Set `connection`, the bridge's own connection to the server, and the log level of that connection."""
        self._connection, self._level = connection, level

    async def call(self, context: Context[Any], params: Any) -> dict[str, Any]:
        """Return the server's result. Raises the same errors as `Client.exchange`, RpcError while there is no
        session, and the errors raised by `PendingCalls` and `Context.forward_questions`."""
        if context.peer.has_handshake:
            relay = CallRelay(context, self._connection.on_server_message)
            try:
                return await self._exchange(context, params_of(context, params), relay)
            finally:
                relay.close()
        call = await self.pending_calls.resume(context)
        if call is None:
            call = UpstreamCall(context, self._connection.on_server_message)
            self._tasks.start(self._run_call(call, context, params_of(context, params)))
        return await self.pending_calls.run_round(context, call)

    def close(self) -> None:
        """Stop the pending calls."""
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
        client, relay = self._connection.client, _AttributedCall(inner, context.link, self._visits)
        self._calls_in_progress.append(relay)
        try:
            task_params = await self.upstream_tasks.task_param(client, context, params.get("name"))
            caller, method = caller_of(context, relay), context.call.method.name
            return await run_as_task(client, caller, method, params, task_params, relay)
        finally:
            self._calls_in_progress.remove(relay)

    # The relay of messages that belong to no call; each is attributed to a client if possible

    async def answer(self, request: ServerRequest) -> dict[str, Any]:
        """Return the answer of the client that the request belongs to: the one whose task it names, or else the only
        one with calls in progress. Raises RpcError if there is no such client, and if the client refuses."""
        if (task := related_task(request.params)) is not None:
            for relay in self._calls_in_progress:
                if relay.task == task:
                    return await relay.answer(request)
        if not self._calls_in_progress:
            raise InternalError("no call is in progress, so there is no client to ask")
        if not self._has_one_client:
            raise InternalError("it is unknown which client this question is for")
        newest = next(
            (relay for relay in reversed(self._calls_in_progress) if relay.can_ask_client),
            self._calls_in_progress[-1],
        )
        with ExitStack() as paused:
            # The server may need the answer for any of these calls, so their time limits are suspended too.
            for other in self._calls_in_progress:
                if other is not newest and isinstance(other.inner, CallRelay):
                    paused.enter_context(other.link.calls.pause_clock(other.inner.context.call))
            return await newest.answer(request)

    def on_server_message(self, message: Notified | Gap) -> None:
        """Forward a log message to the only client with calls in progress, and the end of a page visit to the client
        that was asked to visit the page. Other messages are ignored here."""
        if isinstance(message, Gap):
            return
        if message.method == _LOGGED and self._has_one_client:
            self._calls_in_progress[-1].on_server_message(message)
        elif message.method == _VISITED:
            self.pending_calls.page_visits.on_server_message(message)
            link = self._visits.pop(str(message.params.get("elicitationId")), None)
            if link is not None:
                link.session.notify_session(message.method, message.params)
                link.send_soon()

    @property
    def _has_one_client(self) -> bool:
        """True if all calls in progress belong to one client."""
        return len({relay.link for relay in self._calls_in_progress}) == 1

"""Calls at a server with sessions, for clients without sessions, which can be asked for input only between rounds."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from anyio import CancelScope

from shared.client.tasks.following import TaskState
from shared.concurrency import Signal
from shared.errors import InternalError, McpError, MethodNotFound, RpcError
from shared.protocol.session.client_events import Notified, ServerRequest
from shared.protocol.session.questions import Question, find_missing_capability, read_answer, read_question
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.context import Context

from ..connection import OnServerMessage
from ..tasks import drop_task
from .call_relay import CallRelay

CALL_NOTIFICATIONS = ("notifications/progress", "notifications/message")
"""The notifications that belong to a call, and only to its client."""


class CallEnded(RpcError):
    """Raised if the call to which a request from the server belongs has ended."""


class _PendingRequest:
    """A request from the server that waits for the client's answer."""

    __slots__ = ("answer", "question", "request")

    def __init__(self, request: ServerRequest, question: Question) -> None:
        self.request = request
        self.question = question
        self.answer: dict[str, Any] | None = None


class UpstreamCall:
    """One call at the server, which may take several rounds of its client. It is the relay of the server's messages
    during the call. `run` makes the call, in a task of its own."""

    def __init__(self, context: Context[Any], session_messages: OnServerMessage) -> None:
        """`session_messages` is called with messages that arrive on the stream of the call, but belong to no call."""
        self.owner = context.owner
        self.can_ask_client = context.call.method.multi_round
        """True if the server's requests can be forwarded to the client, as only for methods with rounds."""
        self.is_over = False
        self._peer = context.peer
        self._session_messages = session_messages
        self._relay: CallRelay | None = None
        self._pending: dict[str, _PendingRequest] = {}
        self._request_count = 0
        self._is_task = self._is_task_adopted = False
        self._outcome: dict[str, Any] | McpError | OSError | None = None
        self._changed = Signal()
        self._scope = CancelScope()

    async def run(self, exchange: "Exchange") -> bool:
        """Make the call with `exchange`. Return True if it has ended without being stopped."""
        try:
            with self._scope:
                self._outcome = await exchange(self)
        except (McpError, OSError) as error:
            self._outcome = error
        finally:
            self.is_over = True
            self._changed.wake()
        return self._outcome is not None

    def stop(self) -> None:
        """Stop the call, whose result is no longer needed, and notify the server."""
        self._scope.cancel()

    # The relay of the call

    async def on_became_task(self) -> None:
        """Called when the server has turned the call into a task. Returns once the client's call has become a task
        too, or if its client does not support tasks."""
        self._is_task = True
        self._changed.wake()
        while not self._is_task_adopted and self._relay is not None:
            await self._changed.wait()

    def on_status(self, task: TaskState) -> None:
        """Copy the status message of the server's task to the task of the client's call."""
        if self._relay is not None:
            self._relay.on_status(task)

    async def answer(self, request: ServerRequest) -> dict[str, Any]:
        """Return the client's answer, from this round or the next. Raises CallEnded if the call ends before that, and
        RpcError for a request that this client can't answer."""
        request = drop_task(request)
        question = read_question(request.method, request.params)
        if not self.can_ask_client or find_missing_capability(question, self._peer) is not None:
            raise MethodNotFound(f"the client that called can't be asked: {request.method}")
        if self._relay is not None and self._relay.is_detached:
            return await self._relay.answer(request)
        self._request_count += 1
        key, pending = f"q{self._request_count}", _PendingRequest(request, question)
        self._pending[key] = pending
        self._changed.wake()
        try:
            while pending.answer is None and not self.is_over:
                await self._changed.wait()
        finally:
            self._pending.pop(key, None)
        if pending.answer is None:
            raise CallEnded("the call that asked this question has ended", code=InternalError.code)
        return pending.answer

    def on_server_message(self, message: Notified | Gap) -> None:
        """Forward a message to the client if a round is in progress. Between rounds, drop the notifications of the
        call, and pass all others to `session_messages`."""
        if isinstance(message, Gap):
            return
        if self._relay is not None:
            self._relay.on_server_message(message)
        elif message.method not in CALL_NOTIFICATIONS:
            self._session_messages(message)

    # Rounds of the client

    def store_answers(self, answers: Mapping[str, Any]) -> None:
        """Store the answers of a round. Raises InvalidParams for an answer that does not match its request."""
        answered = [(key, pending, answers[key]) for key, pending in self._pending.items() if key in answers]
        for _, pending, answer in answered:
            read_answer(pending.question, answer)
        for key, pending, answer in answered:
            pending.answer = answer
            del self._pending[key]
        self._changed.wake()

    async def wait_for_requests(
        self, context: Context[Any], gather_seconds: float
    ) -> dict[str, tuple[str, dict[str, Any]]]:
        """Wait until the server requests input, and return its requests, by key; empty if the call has ended instead.
        During the wait, the client of `context` gets the server's notifications. After the first request, wait
        `gather_seconds` for further ones."""
        self._relay = CallRelay(context, self._session_messages)
        try:
            while not self.is_over:
                if self._is_task and not self._is_task_adopted:
                    await self._relay.on_became_task()
                    self._is_task_adopted = True
                    self._changed.wake()
                if not self._pending:
                    await self._changed.wait()
                    continue
                await self._wait_for_more(gather_seconds)
                if self._pending:  # the server has not cancelled them during the wait
                    break
        finally:
            self._relay = None
        if self.is_over:
            return {}
        return {key: (pending.request.method, pending.request.params) for key, pending in self._pending.items()}

    async def _wait_for_more(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while not self.is_over:
                await self._changed.wait()

    def result(self) -> dict[str, Any]:
        """Return the result of the call, which has ended. Raises the error of the call."""
        if isinstance(self._outcome, dict):
            return self._outcome
        raise self._outcome or InternalError("the call was stopped")


Exchange = Callable[[UpstreamCall], Awaitable[dict[str, Any]]]
"""Sends the request of a call and returns the result. The call receives the server's messages."""

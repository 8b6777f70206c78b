"""A call at a server with sessions, on behalf of a client that has none and can be asked between two rounds only."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from anyio import CancelScope

from shared.client.tasks.following import TaskState
from shared.concurrency import Signal
from shared.errors import InternalError, McpError, MethodNotFound, RpcError
from shared.protocol.session.client_events import Asked, Notified
from shared.protocol.session.questions import Question, missing_capability, question_of, read_answer
from shared.protocol.wire.jsonrpc import Gap
from shared.server.dispatch.context import Context

from ..base import Heard
from ..tasks import without_task
from .call_relay import CallRelay

OF_CALLS = ("notifications/progress", "notifications/message")
"""What concerns a call, and nobody but its client."""


class CallOver(RpcError):
    """A question has come too late: the call that it would have been asked in is over."""


class _Pending:
    """A question that the server waits for."""

    __slots__ = ("answer", "asked", "question")

    def __init__(self, asked: Asked, question: Question) -> None:
        self.asked = asked
        self.question = question
        self.answer: dict[str, Any] | None = None


class UpstreamCall:
    """One call at the server, over all rounds of its client's: the relay of what belongs to it. It begins with `run`,
    in a task of its own."""

    def __init__(self, context: Context[Any], apart: Heard) -> None:
        """`apart` takes what came with the call and belongs to none."""
        self.owner = context.owner
        self.asks = context.call.method.multi_round
        """Whether its client can be asked: only some requests have rounds."""
        self.is_over = False
        self._peer = context.peer
        self._apart = apart
        self._relay: CallRelay | None = None
        self._pending: dict[str, _Pending] = {}
        self._asked = 0
        self._is_task = self._is_settled = False
        self._outcome: dict[str, Any] | McpError | OSError | None = None
        self._moved = Signal()
        self._scope = CancelScope()

    async def run(self, exchange: "Exchange") -> bool:
        """Makes the call, which `exchange` does; whether it has ended by itself, and was not stopped."""
        try:
            with self._scope:
                self._outcome = await exchange(self)
        except (McpError, OSError) as error:
            self._outcome = error
        finally:
            self.is_over = True
            self._moved.wake()
        return self._outcome is not None

    def stop(self) -> None:
        """Nobody wants the answer any more: the server is told so."""
        self._scope.cancel()

    # What the server says

    async def became_task(self) -> None:
        """The server has made a task of the call. Returns when it is one of ours, or its client has none."""
        self._is_task = True
        self._moved.wake()
        while not self._is_settled and self._relay is not None:
            await self._moved.wait()

    def said(self, task: TaskState) -> None:
        """Has our task say how that of the server is."""
        if self._relay is not None:
            self._relay.said(task)

    async def answer(self, asked: Asked) -> dict[str, Any]:
        """What the client answers, in this round or the next. Raises CallOver where the call ends before, and
        RpcError for what this client is not to be asked."""
        asked = without_task(asked)
        question = question_of(asked.method, asked.params)
        if not self.asks or missing_capability(question, self._peer) is not None:
            raise MethodNotFound(f"the client that called can't be asked: {asked.method}")
        if self._relay is not None and self._relay.is_detached:
            return await self._relay.answer(asked)
        self._asked += 1
        key, pending = f"q{self._asked}", _Pending(asked, question)
        self._pending[key] = pending
        self._moved.wake()
        try:
            while pending.answer is None and not self.is_over:
                await self._moved.wait()
        finally:
            self._pending.pop(key, None)
        if pending.answer is None:
            raise CallOver("the call that this was asked in is over", code=InternalError.code)
        return pending.answer

    def heard(self, notice: Notified | Gap) -> None:
        """Tells the client of it, where a round is there."""
        if isinstance(notice, Gap):
            return
        if self._relay is not None:
            self._relay.heard(notice)
        elif notice.method not in OF_CALLS:
            self._apart(notice)

    # What its client does

    def answered(self, answers: Mapping[str, Any]) -> None:
        """Takes what a round has brought along. Raises InvalidParams for an answer that does not fit its question."""
        brought = [(key, one, answers[key]) for key, one in self._pending.items() if key in answers]
        for _, pending, answer in brought:
            read_answer(pending.question, answer)
        for key, pending, answer in brought:
            pending.answer = answer
            del self._pending[key]
        self._moved.wake()

    async def attend(self, context: Context[Any], gather_seconds: float) -> dict[str, tuple[str, dict[str, Any]]]:
        """Waits for the next that concerns the client, which hears meanwhile what the server tells: questions, or
        none where the call is over. After the first question others are waited for, for `gather_seconds`."""
        self._relay = CallRelay(context, self._apart)
        try:
            while not self.is_over:
                if self._is_task and not self._is_settled:
                    await self._relay.became_task()
                    self._is_settled = True
                    self._moved.wake()
                if not self._pending:
                    await self._moved.wait()
                    continue
                await self._gather(gather_seconds)
                if self._pending:  # and not taken back meanwhile
                    break
        finally:
            self._relay = None
        if self.is_over:
            return {}
        return {key: (one.asked.method, one.asked.params) for key, one in self._pending.items()}

    async def _gather(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while not self.is_over:
                await self._moved.wait()

    def result(self) -> dict[str, Any]:
        """What came of it, once it is over. Raises the error that it ended with."""
        if isinstance(self._outcome, dict):
            return self._outcome
        raise self._outcome or InternalError("the call was stopped")


Exchange = Callable[[UpstreamCall], Awaitable[dict[str, Any]]]
"""Makes the request of a call, whose relay it gets; its result."""

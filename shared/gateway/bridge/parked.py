"""A call at the server behind a bridge that goes on while its client is away to answer a question.

    first round ──▶ the call, a task of its own ──▶ the server asks ──▶ the round ends with its questions
                        │ parked: nobody waits for it
    next round  ──▶ taken up: the answers reach the server ──▶ the result, or more questions

So a client without sessions uses a server with them. Progress and log messages reach the round that is there at the
time, and a question that comes between two rounds is asked by the next one.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from anyio import CancelScope

from ...errors import InputRequired, InternalError, InvalidParams, McpError, MethodNotFound, PeerError, RpcError
from ...kit.expiry import ExpiryQueue
from ...kit.tasks import Signal
from ...protocol.session.client_events import Asked, Notified
from ...protocol.session.questions import MAX_ROUNDS, Question, missing_capability, question_of, read_answer
from ...protocol.wire.jsonrpc import Gap
from ...server.context import Context
from .base import Heard
from .forwarding import CallRelay
from .visiting import VISIT_SECONDS, Visiting

__all__ = ["OF_CALLS", "PARKED_MOST", "PARKED_SECONDS", "CallOver", "Parking", "UpstreamCall"]

PARKED_SECONDS = 300.0
"""How long a call waits for its client to come back."""
PARKED_MOST = 1_000
"""Calls that wait for their clients at a time."""
GATHER_SECONDS = 0.02
"""How long questions are waited for that go together with a first one: servers send them one after the other."""
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
        self._outcome: dict[str, Any] | McpError | OSError | None = None
        self._moved = Signal()
        self._scope = CancelScope()

    async def run(self, exchange: Callable[["UpstreamCall"], Awaitable[dict[str, Any]]]) -> bool:
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

    async def answer(self, asked: Asked) -> dict[str, Any]:
        """What the client answers, in this round or the next. Raises CallOver where the call ends before, and
        RpcError for what this client is not to be asked."""
        question = question_of(asked.method, asked.params)
        if not self.asks or missing_capability(question, self._peer) is not None:
            raise MethodNotFound(f"the client that called can't be asked: {asked.method}")
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
        """Tells it the client, where a round of its is there."""
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


class Parking:
    """The calls whose clients are away. It ends by `close`."""

    def __init__(
        self,
        *,
        seconds: float = PARKED_SECONDS,
        most: int = PARKED_MOST,
        gather_seconds: float = GATHER_SECONDS,
        visit_seconds: float = VISIT_SECONDS,
    ) -> None:
        self.visiting = Visiting(visit_seconds)
        """The visits that their servers want first."""
        self._calls: dict[str, UpstreamCall] = {}
        self._gather_seconds = gather_seconds
        self._most = most
        self._clocks = ExpiryQueue(seconds, self._expired)

    def __len__(self) -> int:
        return len(self._calls)

    async def take_up(self, context: Context[Any]) -> UpstreamCall | None:
        """The call that a round goes on with, which has its answers now; None where it is to be made.

        Raises InvalidParams where that call is gone, or somebody else's, and for answers that don't fit; and what
        `Visiting.over` does.
        """
        carried = context.call.round.carried
        if carried is None or not context.call.method.multi_round or await self.visiting.over(context):
            return None
        id_ = str(carried.get("parked")) if isinstance(carried, dict) else ""
        call = self._calls.get(id_)
        if call is None or call.owner != context.owner:
            raise InvalidParams("the call this request went on with is gone; start over without requestState")
        self._forget(id_)
        try:
            call.answered(context.call.round.answers)
        except InvalidParams:
            call.stop()
            raise
        return call

    async def round(self, context: Context[Any], call: UpstreamCall) -> dict[str, Any]:
        """The result of `call`, as far as this round of its client's comes. Where it ends with questions the call is
        parked, and wherever else it fails it is stopped.

        Raises InputRequired with the questions, InvalidParams where there were too many rounds, InternalError where
        too many calls are parked, MissingCapability, and the error that the call ends with.
        """
        goes_on = False
        try:
            questions = await call.attend(context, self._gather_seconds)
            if questions:
                return await self._pass_on(questions, context, call)
            return call.result()
        except PeerError as error:
            await self.visiting.ask(context, error)
            raise
        except InputRequired:
            goes_on = True
            raise
        finally:
            if not goes_on:
                call.stop()

    async def _pass_on(
        self, questions: dict[str, tuple[str, dict[str, Any]]], context: Context[Any], call: UpstreamCall
    ) -> dict[str, Any]:
        """Ends the round with `questions`."""
        if context.call.round.number >= MAX_ROUNDS:
            raise InvalidParams(f"this request was not settled in {MAX_ROUNDS} rounds")
        if len(self._calls) >= self._most:
            raise InternalError(f"{self._most} calls wait for their clients, the most there may be")
        id_ = secrets.token_urlsafe(16)
        try:
            return await context.pass_on(questions, {"parked": id_})
        except InputRequired:
            self._calls[id_] = call
            self._clocks.start(id_)
            raise

    def close(self) -> None:
        """Stops all that are parked."""
        for id_ in tuple(self._calls):
            self._expired(id_)
        self._clocks.close()

    def _forget(self, id: str) -> None:
        self._clocks.stop(id)
        self._calls.pop(id, None)

    def _expired(self, id: str) -> None:
        self._calls.pop(id).stop()

"""Calls to the server behind a bridge that continue while their client is away to answer a question.

    first round ──▶ the call, its own task ──▶ the server asks ──▶ the round ends with its questions
                        │ parked: nobody waits for it
    next round  ──▶ taken up: the answers reach the server ──▶ the result, or more questions

So a client without sessions can use a server with sessions. Progress and log messages go to the current round, and a
question between two rounds goes to the next one.
"""

import secrets
from typing import Any

from shared.concurrency import ExpiryQueue
from shared.errors import InputRequired, InternalError, InvalidParams, PeerError
from shared.protocol.session.questions import MAX_ROUNDS
from shared.server.dispatch.context import Context

from ..forwarding import GONE
from .upstream_call import UpstreamCall
from .visiting import VISIT_SECONDS, PageVisits

PENDING_SECONDS = 300.0
"""Seconds that a call waits for its client to return."""
AWAY_SECONDS = 20.0
"""Seconds that a call waits for its client while other calls wait for its session."""
MAX_WAITING_CALLS = 1_000
"""Maximum number of calls that wait for their clients."""
GATHER_SECONDS = 0.02
"""Seconds to wait for further questions after the first, since servers send them one after another."""


class PendingCalls:
    """The calls whose clients are away. It ends with `close`."""

    def __init__(
        self,
        *,
        seconds: float = PENDING_SECONDS,
        away_seconds: float = AWAY_SECONDS,
        max_calls: int = MAX_WAITING_CALLS,
        gather_seconds: float = GATHER_SECONDS,
        visit_seconds: float = VISIT_SECONDS,
    ) -> None:
        self.visiting = PageVisits(visit_seconds)
        """The page visits that servers require first."""
        self.away_seconds = away_seconds
        """Seconds that a client may be away while others wait for its session."""
        self._calls: dict[str, UpstreamCall] = {}
        self._gather_seconds = gather_seconds
        self._max_calls = max_calls
        self._clocks = ExpiryQueue(seconds, self._expire)

    def __len__(self) -> int:
        return len(self._calls)

    async def resume(self, context: Context[Any]) -> UpstreamCall | None:
        """Return the call that a round continues, after passing on its answers; None if the call must be made.

        Raises InvalidParams if that call has ended or belongs to another client, and for invalid answers; and the
        errors of `PageVisits.wait_for_visits`.
        """
        carried = context.call.round.carried
        if carried is None or not context.call.method.multi_round or await self.visiting.wait_for_visits(context):
            return None
        id_ = str(carried.get("parked")) if isinstance(carried, dict) else ""
        call = self._calls.get(id_)
        if call is None or call.owner != context.owner:
            raise InvalidParams(GONE)
        self._clocks.stop(id_)
        self._calls.pop(id_, None)
        try:
            call.store_answers(context.call.round.answers)
        except InvalidParams:
            call.stop()
            raise
        return call

    async def round(self, context: Context[Any], call: UpstreamCall) -> dict[str, Any]:
        """Return the result of `call`, if it comes in this round. If the round ends with questions the call is
        parked; if it fails the call is stopped.

        Raises InputRequired with the questions, InvalidParams after too many rounds, InternalError if too many calls
        are parked, MissingCapability, and the error of the call.
        """
        goes_on = False
        try:
            while questions := await call.wait_for_questions(context, self._gather_seconds):
                if context.call.round.number >= MAX_ROUNDS:
                    raise InvalidParams(f"this request was not completed within {MAX_ROUNDS} rounds")
                if len(self._calls) >= self._max_calls:
                    raise InternalError(f"{self._max_calls} calls are waiting for their clients, which is the limit")
                id_ = secrets.token_urlsafe(16)
                try:
                    # A call that has become a task waits for the answers, and continues with them.
                    answers = await context.forward_questions(questions, {"parked": id_})
                except InputRequired:
                    self._calls[id_], goes_on = call, True
                    self._clocks.start(id_)
                    raise
                call.store_answers(answers)
            return call.result()
        except PeerError as error:
            await self.visiting.request_visits(context, error)
            raise
        finally:
            if not goes_on:
                call.stop()

    def away(self, call: UpstreamCall | None) -> float | None:
        """Return how many seconds the client of `call` has been away; None if the call is not parked."""
        id_ = self._id_of(call)
        return None if id_ is None else self._clocks.elapsed(id_)

    def abandon(self, call: UpstreamCall | None) -> None:
        """Stop `call` if it is parked. Its client gets an error if it returns."""
        if (id_ := self._id_of(call)) is not None:
            self._clocks.stop(id_)
            self._expire(id_)

    def close(self) -> None:
        """Stop all parked calls."""
        for id_ in tuple(self._calls):
            self._expire(id_)
        self._clocks.close()

    def _id_of(self, call: UpstreamCall | None) -> str | None:
        return next((id_ for id_, pending in self._calls.items() if pending is call), None)

    def _expire(self, id: str) -> None:
        self._calls.pop(id).stop()

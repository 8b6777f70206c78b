"""Calls that stay in progress at the server while their client, which has no session, collects the input that the
server requests.

    first round ──▶ the call runs in its own task ──▶ the server requests input ──▶ the round ends with that
                        │ pending: the call goes on, and no request of the client waits for it
    next round  ──▶ the client's answers are sent to the server ──▶ the result, or further requests for input

So a client without sessions can use a server with sessions. A round is one request of the client and its response
(2026-07-28, multi round-trip requests). Progress and log messages go to the current round; a request for input that
comes between two rounds is sent with the next one.
"""

import secrets
from typing import Any

from shared.concurrency import ExpiryQueue
from shared.errors import InputRequired, InternalError, InvalidParams, PeerError
from shared.protocol.session.questions import MAX_ROUNDS
from shared.server.dispatch.context import Context

from ..forwarding import GONE
from .page_visits import VISIT_SECONDS, PageVisits
from .upstream_call import UpstreamCall

PENDING_SECONDS = 300.0
"""Seconds that a call waits for the next round of its client."""
AWAY_SECONDS = 20.0
"""The same if another call needs the session that the waiting call uses."""
MAX_WAITING_CALLS = 1_000
"""Maximum number of calls that wait for their clients."""
GATHER_SECONDS = 0.02
"""Seconds to wait for further requests for input after the first one, since servers send them one after another."""


class PendingCalls:
    """The calls that wait for the next round of their client. End it with `close`."""

    def __init__(
        self,
        *,
        seconds: float = PENDING_SECONDS,
        away_seconds: float = AWAY_SECONDS,
        max_calls: int = MAX_WAITING_CALLS,
        gather_seconds: float = GATHER_SECONDS,
        visit_seconds: float = VISIT_SECONDS,
    ) -> None:
        self.page_visits = PageVisits(visit_seconds)
        """The page visits that servers require before they execute a request."""
        self.away_seconds = away_seconds
        """Seconds that a client may be away between two rounds while other calls need the session of its call."""
        self._calls: dict[str, UpstreamCall] = {}
        self._gather_seconds = gather_seconds
        self._max_calls = max_calls
        self._expiry = ExpiryQueue(seconds, self._expire)

    def __len__(self) -> int:
        return len(self._calls)

    async def resume(self, context: Context[Any]) -> UpstreamCall | None:
        """Return the call that the round of `context` continues, after passing on the answers in it; None if the
        round begins a new call.

        Raises InvalidParams if that call has ended or belongs to another client, or if an answer is invalid, and the
        errors of `PageVisits.wait_for_visits`.
        """
        carried = context.call.round.carried
        if carried is None or not context.call.method.multi_round or await self.page_visits.wait_for_visits(context):
            return None
        id_ = str(carried.get("parked")) if isinstance(carried, dict) else ""
        call = self._calls.get(id_)
        if call is None or call.owner != context.owner:
            raise InvalidParams(GONE)
        self._expiry.stop(id_)
        self._calls.pop(id_, None)
        try:
            call.store_answers(context.call.round.answers)
        except InvalidParams:
            call.stop()
            raise
        return call

    async def run_round(self, context: Context[Any], call: UpstreamCall) -> dict[str, Any]:
        """Return the result of `call` if it ends in this round. If the server requests input, the call becomes
        pending and the round ends; if the round fails, the call is stopped.

        Raises InputRequired with the server's requests, InvalidParams after too many rounds, InternalError if too
        many calls are pending, MissingCapability if the client can't answer, and the error of the call.
        """
        continues = False
        try:
            while requests := await call.wait_for_requests(context, self._gather_seconds):
                if context.call.round.number >= MAX_ROUNDS:
                    raise InvalidParams(f"this request was not completed within {MAX_ROUNDS} rounds")
                if len(self._calls) >= self._max_calls:
                    raise InternalError(f"{self._max_calls} calls are waiting for their clients, which is the limit")
                id_ = secrets.token_urlsafe(16)
                try:
                    # If the call has become a task, this waits for the answers and returns them.
                    answers = await context.forward_questions(requests, {"parked": id_})
                except InputRequired:
                    self._calls[id_], continues = call, True
                    self._expiry.start(id_)
                    raise
                call.store_answers(answers)
            return call.result()
        except PeerError as error:
            await self.page_visits.request_visits(context, error)
            raise
        finally:
            if not continues:
                call.stop()

    def seconds_away(self, call: UpstreamCall | None) -> float | None:
        """Return for how many seconds `call` has waited for its client; None if it is not pending."""
        id_ = self._id_of(call)
        return None if id_ is None else self._expiry.elapsed(id_)

    def abandon(self, call: UpstreamCall | None) -> None:
        """Stop `call` if it is pending. The next round of its client, if any, gets an error."""
        if (id_ := self._id_of(call)) is not None:
            self._expiry.stop(id_)
            self._expire(id_)

    def close(self) -> None:
        """Stop all pending calls."""
        for id_ in tuple(self._calls):
            self._expire(id_)
        self._expiry.close()

    def _id_of(self, call: UpstreamCall | None) -> str | None:
        return next((id_ for id_, pending in self._calls.items() if pending is call), None)

    def _expire(self, id: str) -> None:
        self._calls.pop(id).stop()

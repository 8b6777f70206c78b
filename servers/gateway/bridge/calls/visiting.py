"""Pages that a server wants to be visited before it does what it was asked (2025-11-25, Elicitation, URL Mode), for
clients whose era has no such error: they are asked in a round, and the call is made anew in the next one."""

from typing import Any

from shared.client.calls.url_elicitation import Visits, visits_wanted
from shared.errors import PeerError, ToolError
from shared.protocol.session.client_events import Notified
from shared.server.dispatch.context import Context

VISIT_SECONDS = 20.0
"""How long the end of a visit is waited for once the page was opened: a server need not tell it."""
_KEY = "visited"


class Visiting:
    """The visits that clients of one server were asked for."""

    def __init__(self, seconds: float = VISIT_SECONDS) -> None:
        self._seconds = seconds
        self._visits = Visits()

    async def ask(self, context: Context[Any], error: PeerError) -> None:
        """Ends the round with the pages that `error` names, by InputRequired. Raises MissingCapability where the
        client visits none. Returns where it is another error."""
        wanted = visits_wanted(error)
        if wanted is not None:
            for id_ in wanted.requests:
                self._visits.begin(id_)
            await context.pass_on(wanted.requests, {_KEY: list(wanted.requests)})

    async def over(self, context: Context[Any]) -> bool:
        """Whether this round follows one that has asked for visits: it returns when they are over, or after a while.

        Raises ToolError where the user did not open every page.
        """
        carried, answers = context.call.round.carried, context.call.round.answers
        ids = carried.get(_KEY) if isinstance(carried, dict) else None
        if ids is None:
            return False
        if any(answers.get(id_, {}).get("action") != "accept" for id_ in ids):
            raise ToolError("the user did not visit the page that the server asks for")
        await self._visits.wait(ids, self._seconds)
        return True

    def heard(self, notice: Notified) -> None:
        """Takes what the server tells: it may be that a visit is over."""
        if notice.method == "notifications/elicitation/complete":
            self._visits.end(str(notice.params.get("elicitationId")))

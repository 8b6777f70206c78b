"""Pages that the user must visit before a server executes a request (2025-11-25, Elicitation, URL Mode), for
clients of protocol versions without that error: one round trip asks the user to visit the pages, the next repeats
the call."""

from typing import Any

from shared.client.calls.url_elicitation import Visits, required_visits
from shared.errors import PeerError, ToolError
from shared.protocol.session.client_events import Notified
from shared.server.dispatch.context import Context

VISIT_SECONDS = 20.0
"""Seconds to wait for the end of a visit after the page was opened: a server need not report it."""
_KEY = "visited"


class PageVisits:
    """The visits that clients of one server were asked to make."""

    def __init__(self, seconds: float = VISIT_SECONDS) -> None:
        self._seconds = seconds
        self._visits = Visits()

    async def request_visits(self, context: Context[Any], error: PeerError) -> None:
        """If `error` names pages to visit, raise InputRequired with them. Raises MissingCapability if the client
        can't visit pages."""
        required = required_visits(error)
        if required is not None:
            for id_ in required.requests:
                self._visits.begin(id_)
            await context.forward_questions(required.requests, {_KEY: list(required.requests)})

    async def wait_for_visits(self, context: Context[Any]) -> bool:
        """If the previous round asked for visits, wait until they end or time out and return True; otherwise return
        False.

        Raises ToolError if the user did not open every page.
        """
        carried, answers = context.call.round.carried, context.call.round.answers
        ids = carried.get(_KEY) if isinstance(carried, dict) else None
        if ids is None:
            return False
        if any(answers.get(id_, {}).get("action") != "accept" for id_ in ids):
            raise ToolError("the user did not open every page that the server requested")
        await self._visits.wait(ids, self._seconds)
        return True

    def on_server_message(self, notice: Notified) -> None:
        """Handle a notification from the server: a visit may have ended."""
        if notice.method == "notifications/elicitation/complete":
            self._visits.end(str(notice.params.get("elicitationId")))

"""Pages that the user must visit before a server executes a request (2025-11-25, Elicitation, URL Mode). The server
demands them with an error that later protocol versions lack. For clients of those versions one round asks the user to
visit the pages, and the next round repeats the call."""

from typing import Any

from shared.client.calls.url_elicitation import Visits, required_visits
from shared.errors import PeerError, ToolError
from shared.protocol.session.client_events import Notified
from shared.server.dispatch.context import Context

VISIT_SECONDS = 20.0
"""Seconds to wait for the end of a visit after the page was opened, since a server need not report the end."""
_KEY = "visited"


class PageVisits:
    """The visits that clients of one server were asked to make."""

    def __init__(self, seconds: float = VISIT_SECONDS) -> None:
        self._seconds = seconds
        self._visits = Visits()

    async def request_visits(self, context: Context[Any], error: PeerError) -> None:
        """If `error` names pages to visit, raise InputRequired with a request to visit them, or MissingCapability if
        the client can't open pages; otherwise, do nothing."""
        required = required_visits(error)
        if required is not None:
            for id_ in required.requests:
                self._visits.begin(id_)
            await context.forward_questions(required.requests, {_KEY: list(required.requests)})

    async def wait_for_visits(self, context: Context[Any]) -> bool:
        """If the previous round asked for visits, wait until they end or time out and return True; otherwise False.

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

    def on_server_message(self, message: Notified) -> None:
        """Handle a notification from the server: a visit may have ended."""
        if message.method == "notifications/elicitation/complete":
            self._visits.end(str(message.params.get("elicitationId")))

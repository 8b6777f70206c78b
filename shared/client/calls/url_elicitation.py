"""Elicitation by URL: the user visits a page. In 2025-11-25, a server may report that a visit is complete, and may
refuse a request until a page has been visited (Elicitation, URL Mode). In later versions, servers do neither."""

from collections.abc import Iterable
from typing import Any

import anyio
from pydantic import ValidationError

from ...errors import PeerError
from ...protocol.session.client_events import InputWanted
from ...protocol.types.elicitation import ElicitUrl

MAX_VISITS = 100
"""Maximum number of visits that are not complete. Without it, a server that never reports completion would use more
and more memory."""
_VISIT_REQUIRED = -32042
"""The error code of a request that is refused until a page has been visited (`URLElicitationRequiredError`)."""


class Visits:
    """The visits of one client that are not complete."""

    def __init__(self) -> None:
        self._events: dict[str, anyio.Event] = {}

    def begin(self, id: str) -> None:
        """Begin the visit of a page. If there are too many, the oldest visit is dropped."""
        self._events.setdefault(id, anyio.Event())
        if len(self._events) > MAX_VISITS:
            self.end(next(iter(self._events)))

    def end(self, id: str) -> bool:
        """End a visit because it is complete or cancelled. Returns False if it is unknown or has ended."""
        event = self._events.pop(id, None)
        if event is None:
            return False
        event.set()
        return True

    async def wait(self, ids: Iterable[str], timeout_seconds: float | None) -> None:
        """Wait until these visits are complete, but for at most `timeout_seconds`: a server need not report it."""
        with anyio.move_on_after(timeout_seconds):
            for event in [self._events[id_] for id_ in ids if id_ in self._events]:
                await event.wait()


def required_visits(error: PeerError) -> InputWanted | None:
    """Return the input requests for the pages that must be visited before a request is repeated, by visit id, if the
    server's `error` requires that; otherwise None."""
    elicitations = (
        error.data.get("elicitations") if error.code == _VISIT_REQUIRED and isinstance(error.data, dict) else None
    )
    if not isinstance(elicitations, list) or len(elicitations) > MAX_VISITS:
        return None
    requests: dict[str, tuple[str, dict[str, Any]]] = {}
    for params in elicitations:
        try:
            visit = ElicitUrl.model_validate(params)
        except ValidationError:
            return None
        if visit.elicitation_id is None:
            return None
        requests[visit.elicitation_id] = ("elicitation/create", {**params, "mode": "url"})
    return InputWanted(0, requests, None) if requests else None

"""The pages that users are sent to: a server may tell when a visit is over, and it may refuse a request until a page
has been visited (2025-11-25, Elicitation, URL Mode). Later versions have neither.
"""

from collections.abc import Iterable
from typing import Any

import anyio
from pydantic import ValidationError

from ...errors import PeerError
from ...protocol.session.client_events import InputWanted
from ...protocol.types.elicitation import ElicitUrl

MAX_VISITS = 100
"""Visits whose end may still be told; a server that never tells it costs no more."""
_VISIT_FIRST = -32042


class Visits:
    """The visits of one client that have begun and are not over."""

    def __init__(self) -> None:
        self._over: dict[str, anyio.Event] = {}

    def begin(self, id: str) -> None:
        """The user is shown a page. The oldest visit is forgotten where there are many."""
        self._over.setdefault(id, anyio.Event())
        if len(self._over) > MAX_VISITS:
            self.end(next(iter(self._over)))

    def end(self, id: str) -> bool:
        """The visit is over, or there will be none; False where it is unknown or was over already."""
        over = self._over.pop(id, None)
        if over is None:
            return False
        over.set()
        return True

    async def wait(self, ids: Iterable[str], seconds: float | None) -> None:
        """Returns when these visits are over, and after so many seconds: a server need not tell."""
        with anyio.move_on_after(seconds):
            for over in [self._over[id_] for id_ in ids if id_ in self._over]:
                await over.wait()


def visits_wanted(error: PeerError) -> InputWanted | None:
    """The pages that are to be visited before a request is made again, by the id of the visit, where that is what the
    server's `error` says."""
    listed = error.data.get("elicitations") if error.code == _VISIT_FIRST and isinstance(error.data, dict) else None
    if not isinstance(listed, list) or len(listed) > MAX_VISITS:
        return None
    requests: dict[str, tuple[str, dict[str, Any]]] = {}
    for params in listed:
        try:
            visit = ElicitUrl.model_validate(params)
        except ValidationError:
            return None
        if visit.elicitation_id is None:
            return None
        requests[visit.elicitation_id] = ("elicitation/create", {**params, "mode": "url"})
    return InputWanted(0, requests, None) if requests else None

"""The pages for operators and their programs: liveness, readiness, metrics and current state.

`/healthz` queries no server, so no server can delay it. `/readyz` queries all servers at once, with a short time
limit. To senders without a required token, both report only the facts that an orchestrator needs.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ....contracts import Authenticator, RemoteAuthenticator
from ....protocol.http.rules import JSON, Refusal, refuse
from ....protocol.wire.codec import encode
from ....telemetry.metrics import Figures
from ....telemetry.readiness import Phase, health
from ....telemetry.siblings import Siblings, Totals
from ....version import __version__
from .access_log import SENDER
from .mount import Mount
from .state import state_of

HEALTH, READY, METRICS, STATE = "/healthz", "/readyz", "/metrics", "/debug/state"
_ONLY_WITH_TOKEN = refuse(401, "only this machine may read this without a token; start the server with a token")

_UNREACHABLE = refuse(503, "the other processes can't be reached; try again in a moment", Retry_After="1")


class Probes:
    """The handlers of these pages for one listener. Each receives the refusal of a sender who may not see the
    details, otherwise None."""

    def __init__(
        self,
        mounts: Sequence[Mount],
        *,
        is_exposed: bool,
        siblings: Siblings | None = None,
        authenticator: Authenticator | None = None,
    ) -> None:
        """`is_exposed` is true if no token is needed and other machines can reach the listener; `siblings` are the
        other processes that serve the same port. The `authenticator` may have to reach issuers before it is ready."""
        self._mounts = mounts
        self._is_exposed = is_exposed
        self._siblings = siblings
        self._remote = authenticator if isinstance(authenticator, RemoteAuthenticator) else None
        self._worker_field = {} if siblings is None else {"worker": siblings.number}
        if siblings is not None:
            siblings.figures = self._figures

    async def health(self, _request: Request, refusal: Refusal | None) -> Response:
        """Return that the process is alive, its worker number, and its numbers of open sessions and streams; for a
        single server also the server's description."""
        if refusal is not None:
            return JSONResponse({"status": "ok"})
        counts = Counter[str]()
        for mount in self._mounts:
            counts.update(sessions=mount.endpoint.sessions, streams=mount.endpoint.streams)
        running = self._mounts[0].running
        if self._mounts[0].is_only_server and running is not None:
            return JSONResponse({**health(running, **counts), **self._worker_field})
        return JSONResponse({"status": "ok", "version": __version__, **counts, **self._worker_field})

    async def ready(self, _request: Request, refusal: Refusal | None) -> Response:
        """Return 200 if every server can do its work, and tokens can be checked, otherwise 503."""
        states = await asyncio.gather(*(mount.state() for mount in self._mounts))
        unreached = None if self._remote is None else self._remote.unreached
        is_ready = unreached is None and all(state.phase is Phase.READY for state in states)
        body: dict[str, Any] = {"status": "ready" if is_ready else "not ready"}
        if refusal is None:
            body["servers"] = {
                mount.name: {"status": state.phase.value}
                if state.reason is None
                else {"status": state.phase.value, "reason": state.reason}
                for mount, state in zip(self._mounts, states, strict=True)
            }
            if unreached is not None:
                body["reason"] = unreached
        return JSONResponse(body, 200 if is_ready else 503, {"cache-control": "no-store"})

    async def metrics(self, request: Request, refusal: Refusal | None) -> Response:
        """Return the metrics of the servers, from all processes that serve the port, in Prometheus format."""
        if refusal is not None:
            return refusal_response(refusal)
        if find_spec("prometheus_client") is None:
            return refusal_response(refuse(501, "this needs the extra 'http', which is not installed here"))
        exposition = await to_thread.run_sync(_load_exposition)
        try:
            figures = self._figures() if self._siblings is None else await self._siblings.request_totals()
        except TimeoutError:
            # The counts of this process alone are lower than the totals reported before, and counters must not
            # decrease.
            return refusal_response(_UNREACHABLE)
        text, content_type = exposition(figures, request.headers.get("accept", ""))
        return Response(text, media_type=None, headers={"content-type": content_type})

    async def state(self, request: Request, refusal: Refusal | None) -> Response:
        """Return the connections, calls and queues that the sender may see."""
        refusal = refusal or (_ONLY_WITH_TOKEN if self._is_exposed else None)
        if refusal is not None:
            return refusal_response(refusal)
        return JSONResponse(
            {**self._worker_field, **state_of(self._mounts, request.scope[SENDER])},
            headers={"cache-control": "no-store"},
        )

    def _figures(self) -> list[Figures]:
        return [mount.figures() for mount in self._mounts]


def refusal_response(refusal: Refusal) -> Response:
    """Return a refusal as a Starlette response."""
    return Response(encode(refusal.failure), refusal.status, dict(refusal.headers), media_type=JSON)


def _load_exposition() -> Callable[[Sequence[Figures] | Totals, str], tuple[bytes, str]]:
    # The import takes a tenth of a second; in a thread, it delays no other request.
    from ....telemetry.prometheus import exposition

    return exposition

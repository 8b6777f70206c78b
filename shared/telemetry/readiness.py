"""Health and readiness of a server, as `/healthz` and `/readyz` report them.

The author of a server may give `server.on_ready` a function that checks its readiness. It runs in a separate task,
once for all simultaneous requests, and no request waits for it longer than `CHECK_SECONDS`. So a burst of requests,
or a function that hangs, delays nobody.
"""

import asyncio
import logging
from enum import Enum
from typing import Any, NamedTuple

import anyio

from ..server.run import Run

log = logging.getLogger("shared.ops")

CHECK_SECONDS = 2.0
"""Seconds that a request waits for the check of the server's author."""
MAX_CHECK_SECONDS = 60.0
"""Seconds after which a check is cancelled, so that the next one can start."""


class Phase(Enum):
    """The phase of a server."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """The server runs, but a check has found that it can't do its work."""
    FAILED = "failed"
    STOPPED = "stopped"


class State(NamedTuple):
    """The phase of a server, with a reason for operators if it is not ready."""

    phase: Phase
    reason: str | None = None


_PENDING = State(Phase.DEGRADED, f"its check did not finish within {CHECK_SECONDS:g} s")
_FAILED_CHECK = State(Phase.DEGRADED, "its check failed; the log says why")


class Readiness:
    """The readiness of one server. The code that runs the server calls `on_start`, `on_failure` and `on_stop`."""

    def __init__(self) -> None:
        self._running: Run[Any] | None = None
        self._state = State(Phase.STARTING)
        self._logged_state = self._state
        self._check: asyncio.Task[str | None] | None = None
        self._check_started = 0.0

    @property
    def phase(self) -> Phase:
        """The phase of the server as far as it is known without a check; never "degraded"."""
        return self._state.phase

    def on_start(self, run: Run[Any]) -> None:
        """Record that the server accepts requests from now on."""
        self._running = run
        self._set_state(State(Phase.READY))

    def on_failure(self, reason: str) -> None:
        """Record that the server could not start, or has ended because of an error."""
        self._set_state(State(Phase.FAILED, reason))

    def on_stop(self) -> None:
        """Record that the server accepts no more requests."""
        self._set_state(State(Phase.STOPPED))

    async def state(self) -> State:
        """Return the current state of the server, after at most `CHECK_SECONDS`. Never raises."""
        if self._state.phase is not Phase.READY or self._running is None:
            return self._state
        # A replica that can't reach the others can't serve any session, whatever the check would find.
        replica = self._running.replication.replica
        if replica is not None and replica.disconnect_reason is not None:
            current = State(Phase.DEGRADED, replica.disconnect_reason)
        elif self._running.server.ready is None:
            current = self._state
        else:
            current = await self._run_check()
        if current != self._logged_state:
            level = logging.INFO if current.reason is None else logging.WARNING
            log.log(level, "%s", current.phase.value if current.reason is None else f"not ready: {current.reason}")
        self._logged_state = current
        return current

    def _set_state(self, state: State) -> None:
        self._state = self._logged_state = state
        if self._check is not None:
            self._check.cancel()
            self._check = None

    async def _run_check(self) -> State:
        loop = asyncio.get_running_loop()
        if self._check is None:
            self._check, self._check_started = loop.create_task(self._check_all_runs()), loop.time()
        # The check goes on when no request waits for it any more. If each request started one, and it hung in a
        # thread, each would leave another hanging thread.
        check = self._check
        # The time counts from the start of the check, so that later requests for a hanging one wait less.
        remaining = self._check_started + CHECK_SECONDS - loop.time()
        await asyncio.wait([check], timeout=max(remaining, 0.0))
        if not check.done():
            return _PENDING
        if self._check is check:
            self._check = None
        # If the server has ended during the check, that state is newer than the result of the check.
        if self._state.phase is not Phase.READY:
            return self._state
        if check.cancelled():
            return _FAILED_CHECK
        error = check.exception()
        if error is None:
            reason = check.result()
            return State(Phase.READY) if reason is None else State(Phase.DEGRADED, reason)
        if self._logged_state != _FAILED_CHECK:
            log.error("the readiness check failed", exc_info=error)
        return _FAILED_CHECK

    async def _check_all_runs(self) -> str | None:
        run = self._running
        assert run is not None
        assert run.server.ready is not None
        with anyio.fail_after(MAX_CHECK_SECONDS):
            for narrowed_run in run.parts.all:
                reason = await run.server.ready(narrowed_run)
                if reason is not None:
                    return reason
            return None


def health(run: Run[Any], *, sessions: int, streams: int) -> dict[str, Any]:
    """Return the body of the answer to a health check. `sessions` and `streams` are their numbers."""
    server, describe_health = run.server.implementation, run.server.health
    return {
        "status": "ok",
        "server": server.name,
        "version": server.version,
        "sessions": sessions,
        "streams": streams,
        **({} if describe_health is None else describe_health(run)),
    }

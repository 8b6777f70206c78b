"""Health and readiness of a server, as `/healthz` and `/readyz` report them.

The server itself checks its readiness, with the function given to `server.on_ready`. The function runs in a separate
task, once for all simultaneous requests, and no request waits long for it, so neither many requests nor a hanging
function cause delays.
"""

import asyncio
import logging
from enum import Enum
from typing import Any, NamedTuple

import anyio

from ..server.run import Run

log = logging.getLogger("shared.ops")

CHECK_SECONDS = 2.0
"""Seconds that a request waits for the server's own check."""
MAX_CHECK_SECONDS = 60.0
"""Seconds until a check is cancelled, so that the next check can start."""


class Phase(Enum):
    """The phase of a server, and the lasting part of its state."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """The server accepts requests, but its check reports that it can't do its work."""
    FAILED = "failed"
    STOPPED = "stopped"


class State(NamedTuple):
    """The state of a server, with a reason in plain words if it is not ready."""

    phase: Phase
    reason: str | None = None


_PENDING = State(Phase.DEGRADED, f"its check did not finish within {CHECK_SECONDS:g} s")
_FAILED_CHECK = State(Phase.DEGRADED, "its check failed; the log says why")


class Readiness:
    """The readiness of one server. The code that runs the server calls `on_start`, `on_failure` and `on_stop`."""

    def __init__(self) -> None:
        self._running: Run[Any] | None = None
        self._state = State(Phase.STARTING)
        self._logged = self._state
        self._check: asyncio.Task[str | None] | None = None
        self._check_started = 0.0

    @property
    def phase(self) -> Phase:
        """The phase of the server, without a check."""
        return self._state.phase

    def on_start(self, running: Run[Any]) -> None:
        """Record that the server accepts requests from now on."""
        self._running = running
        self._set_state(State(Phase.READY))

    def on_failure(self, reason: str) -> None:
        """Record that the server has ended on its own."""
        self._set_state(State(Phase.FAILED, reason))

    def on_stop(self) -> None:
        """Record that the server accepts no more requests."""
        self._set_state(State(Phase.STOPPED))

    async def state(self) -> State:
        """Return the current state of the server, within `CHECK_SECONDS`. Never raises."""
        if self._state.phase is not Phase.READY or self._running is None:
            return self._state
        # Without the other replicas the server can't serve any session, whatever its own check returns.
        replica = self._running.replication.replica
        if replica is not None and replica.reason is not None:
            current = State(Phase.DEGRADED, replica.reason)
        elif self._running.server.ready is None:
            current = self._state
        else:
            current = await self._run_check()
        if current != self._logged:
            level = logging.INFO if current.reason is None else logging.WARNING
            log.log(level, "%s", current.phase.value if current.reason is None else f"not ready: {current.reason}")
        self._logged = current
        return current

    def _set_state(self, state: State) -> None:
        self._state = self._logged = state
        if self._check is not None:
            self._check.cancel()
            self._check = None

    async def _run_check(self) -> State:
        loop = asyncio.get_running_loop()
        if self._check is None:
            self._check, self._check_started = loop.create_task(self._check_parts()), loop.time()
        # The check continues when no request waits for it anymore. Otherwise, if it hangs in a thread, each request
        # would leave another hanging thread.
        check = self._check
        # A late request for a hanging check does not wait as long as the first one.
        remaining = self._check_started + CHECK_SECONDS - loop.time()
        await asyncio.wait([check], timeout=max(remaining, 0.0))
        if not check.done():
            return _PENDING
        if self._check is check:
            self._check = None
        # The server may have ended since, and its state is newer than the check.
        if self._state.phase is not Phase.READY:
            return self._state
        if check.cancelled():
            return _FAILED_CHECK
        error = check.exception()
        if error is None:
            reason = check.result()
            return State(Phase.READY) if reason is None else State(Phase.DEGRADED, reason)
        if self._logged != _FAILED_CHECK:
            log.error("the readiness check failed", exc_info=error)
        return _FAILED_CHECK

    async def _check_parts(self) -> str | None:
        running = self._running
        assert running is not None
        assert running.server.ready is not None
        with anyio.fail_after(MAX_CHECK_SECONDS):
            for part in running.parts.all:
                reason = await running.server.ready(part)
                if reason is not None:
                    return reason
            return None


def health(running: Run[Any], *, sessions: int, streams: int) -> dict[str, Any]:
    """Return the body of a health check. `sessions` and `streams` are counts; the body contains no names."""
    server, describe_health = running.server.implementation, running.server.health
    return {
        "status": "ok",
        "server": server.name,
        "version": server.version,
        "sessions": sessions,
        "streams": streams,
        **({} if describe_health is None else describe_health(running)),
    }

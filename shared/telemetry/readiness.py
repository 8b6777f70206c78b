"""How a server is: what `/healthz` says of it, and whether it can do its work now, as `/readyz` says.

Of the latter a server speaks itself, by the function of `server.on_ready`. That runs in a task of its own, once for
all who ask at the same time, and nobody waits long for it: so neither many who ask nor a function that hangs holds up
anything.
"""

import asyncio
import logging
from enum import Enum
from typing import Any, NamedTuple

import anyio

from ..server.run import Run

log = logging.getLogger("shared.ops")

CHECK_SECONDS = 2.0
"""How long somebody who asks waits for the server's own check."""
LONGEST_CHECK = 60.0
"""Seconds until a check is given up, so that the next one may do better."""


class Phase(Enum):
    """How far a server is, and what of it that lasts."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """It serves, but its check says that it can't do its work."""
    FAILED = "failed"
    STOPPED = "stopped"


class State(NamedTuple):
    """What is said of a server, with a reason in plain words where it is not ready."""

    phase: Phase
    reason: str | None = None


_PENDING = State(Phase.DEGRADED, f"its check did not end within {CHECK_SECONDS:g} s")
_BROKEN = State(Phase.DEGRADED, "its check failed; the log says why")


class Readiness:
    """The readiness of one server, which is told by whoever runs it: `served`, `failed`, `stopped`."""

    def __init__(self) -> None:
        self._running: Run[Any] | None = None
        self._state = State(Phase.STARTING)
        self._said = self._state
        self._check: asyncio.Task[str | None] | None = None
        self._begun = 0.0

    @property
    def phase(self) -> Phase:
        """How far the server is, without a check."""
        return self._state.phase

    def served(self, running: Run[Any]) -> None:
        """The server takes requests from now on."""
        self._running = running
        self._settle(State(Phase.READY))

    def failed(self, reason: str) -> None:
        """The server has ended by itself."""
        self._settle(State(Phase.FAILED, reason))

    def stopped(self) -> None:
        """The server takes no more requests."""
        self._settle(State(Phase.STOPPED))

    async def state(self) -> State:
        """How the server is now. Takes `CHECK_SECONDS` at most, and raises nothing."""
        if self._state.phase is not Phase.READY or self._running is None:
            return self._state
        # Before the server's own check: without the others it can serve nobody's session, whatever it finds of
        # itself.
        replica = self._running.replication.replica
        if replica is not None and replica.reason is not None:
            found = State(Phase.DEGRADED, replica.reason)
        elif self._running.server.ready is None:
            found = self._state
        else:
            found = await self._checked()
        if found != self._said:
            level = logging.INFO if found.reason is None else logging.WARNING
            log.log(level, "%s", found.phase.value if found.reason is None else f"not ready: {found.reason}")
        self._said = found
        return found

    def _settle(self, state: State) -> None:
        self._state = self._said = state
        if self._check is not None:
            self._check.cancel()
            self._check = None

    async def _checked(self) -> State:
        loop = asyncio.get_running_loop()
        if self._check is None:
            self._check, self._begun = loop.create_task(self._ask()), loop.time()
        # Not cancelled when nobody waits any more: what hangs in a thread would hang there once for each who asks.
        check = self._check
        # Whoever comes late to a check that hangs does not wait as long as the first one did.
        left = self._begun + CHECK_SECONDS - loop.time()
        await asyncio.wait([check], timeout=max(left, 0.0))
        if not check.done():
            return _PENDING
        if self._check is check:
            self._check = None
        # The server has ended since: what is known of that is newer.
        if self._state.phase is not Phase.READY:
            return self._state
        if check.cancelled():
            return _BROKEN
        error = check.exception()
        if error is None:
            reason = check.result()
            return State(Phase.READY) if reason is None else State(Phase.DEGRADED, reason)
        if self._said != _BROKEN:
            log.error("the check of readiness failed", exc_info=error)
        return _BROKEN

    async def _ask(self) -> str | None:
        running = self._running
        assert running is not None
        assert running.server.ready is not None
        with anyio.fail_after(LONGEST_CHECK):
            for one in running.parts.all:
                reason = await running.server.ready(one)
                if reason is not None:
                    return reason
            return None


def health(running: Run[Any], *, sessions: int, streams: int) -> dict[str, Any]:
    """The body of a health check. `sessions` and `streams` are counts; nobody is named."""
    server, said = running.server.implementation, running.server.health
    return {
        "status": "ok",
        "server": server.name,
        "version": server.version,
        "sessions": sessions,
        "streams": streams,
        **({} if said is None else said(running)),
    }

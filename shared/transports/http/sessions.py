"""The sessions of one endpoint: they are opened, found by their id and their principal, and end.

A session that is being opened is found by nobody, until its client has been told its id. One that ends in the middle
of something takes a task, which lives in that of the endpoint; all others end at once. Ten thousand tasks at once
would be more memory than the sessions were.
"""

import logging
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from ...ops.memory import give_back
from ...protocol.identity import Principal
from ...server.running import Running
from .limits import Keeping, SessionLimits
from .session import HttpSession
from .shares import Shares

__all__ = ["Sessions"]

log = logging.getLogger("shared.transports.http")

BURST = 100
"""Sessions that must have ended before their memory is given back; fewer are not worth the time."""
QUIET_SECONDS = 1.0


class Sessions:
    """The sessions of one endpoint."""

    def __init__(self, running: Running[Any], tasks: TaskGroup, limits: SessionLimits) -> None:
        self._running = running
        self._tasks = tasks
        self._limits = limits
        self._keeping = Keeping(limits)
        self._shares = Shares(limits.sessions, self._keeping.idle)
        self._by_id: dict[str, HttpSession] = {}
        self._opening: set[HttpSession] = set()
        self._ended = 0

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def streams(self) -> int:
        """How many streams are being read in all of them."""
        return sum(session.streams for session in (*self._opening, *self._by_id.values()))

    def open(self, principal: Principal | None, client: str) -> HttpSession | None:
        """A session that has no id yet as far as anybody knows; None where there are too many, and none of whoever
        has most has to make room for it."""
        if len(self._by_id) + len(self._opening) >= self._limits.sessions:
            yielding = self._shares.yielding(client)
            if yielding is None:
                return None
            self.end(yielding)
        session = HttpSession(self._running, principal, client, self._keeping, self.end)
        self._opening.add(session)
        self._shares.add(session)
        return session

    def confirm(self, session: HttpSession) -> None:
        """The session is initialized: from now on it is found by its id."""
        if session in self._opening:
            self._opening.remove(session)
            self._by_id[session.id] = session

    def find(self, id: str, principal: Principal | None) -> HttpSession | None:
        """The session of that id. Somebody else's is as unknown as one that never was."""
        session = self._by_id.get(id)
        if session is None or session.principal != principal:
            return None
        self._shares.use(session)
        return session

    def end(self, session: HttpSession) -> None:
        """Ends one session at once: its id is unknown from now on, what is under way is cancelled."""
        if not self._forget(session):
            return
        if session.leave():
            self._count_ended()
        else:
            self._tasks.start_soon(partial(self._finish, session, orderly=False))

    def end_all(self, *, orderly: bool) -> None:
        """Ends every session; lets each finish what is under way, if `orderly`, else cancels it."""
        for session in (*self._opening, *self._by_id.values()):
            self._tasks.start_soon(partial(self._finish, session, orderly=orderly))

    def _forget(self, session: HttpSession) -> bool:
        known = session in self._opening or session.id in self._by_id
        if known:
            self._shares.remove(session)
        self._opening.discard(session)
        self._by_id.pop(session.id, None)
        return known

    async def _finish(self, session: HttpSession, *, orderly: bool) -> None:
        try:
            await session.finish(orderly=orderly)
        except Exception:
            log.exception("a session failed")
        finally:
            self._forget(session)
            self._count_ended()

    def _count_ended(self) -> None:
        self._ended += 1
        if self._ended == BURST:
            self._tasks.start_soon(self._give_back)

    async def _give_back(self) -> None:
        """Gives the memory of many sessions back when no more have ended for a while, so at the end of a burst."""
        before = 0
        while before != self._ended:
            before = self._ended
            await anyio.sleep(QUIET_SECONDS)
        self._ended = 0
        give_back()

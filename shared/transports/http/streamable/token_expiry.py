"""Decides which tokens may read a stream, and ends long-lived streams when the token that opened them expires, unless
a newer token has arrived since.

A pending call is not ended: it was allowed when it began, and its duration is limited.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ....auth.policy import grants
from ....protocol.identity import Principal
from ....protocol.session.server import ServerSession

CHECK_SECONDS = 3_600.0
"""Maximum number of seconds between two checks, because the event loop's clock may stop while the machine sleeps."""
REVOKED_SECONDS = 5.0
"""Seconds between two checks for tokens that can be revoked."""


def may_read(principal: Principal | None, session: ServerSession) -> bool:
    """Return True if the token of `principal` has all scopes that the session's calls have required. A reader would
    see the answers to these calls, and their messages."""
    needed = session.needed_scopes
    return not needed or principal is None or principal.scopes is None or grants(principal.scopes, needed)


def newest_reader(session: ServerSession) -> Principal | None:
    """Return the newest token of the session's principal; None if it may not read the session's messages."""
    return session.principal if may_read(session.principal, session) else None


@contextmanager
def end_with_token(
    opening_principal: Principal | None, newest: Callable[[], Principal | None], end: Callable[[], None]
) -> Iterator[None]:
    """Watch the token with which a stream was opened (`opening_principal`) during the block, which serves the stream.
    Call `end` as soon as neither it nor the principal's newest token (returned by `newest`) is valid any more."""
    if opening_principal is None or (opening_principal.expires is None and opening_principal.is_revoked is None):
        yield
        return
    watch = _TokenWatch(opening_principal, newest, end)
    watch.check()
    try:
        yield
    finally:
        watch.stop()


class _TokenWatch:
    def __init__(
        self, opening_principal: Principal, newest: Callable[[], Principal | None], end: Callable[[], None]
    ) -> None:
        self._opening_principal = opening_principal
        self._newest = newest
        self._end = end
        self._timer: asyncio.TimerHandle | None = None

    def check(self) -> None:
        """End the stream, or check again later."""
        newest = self._newest()
        # Replicas do not share whether a token was revoked, so one that came from another replica does not count.
        if newest is not None and newest.is_revoked is None and self._opening_principal.is_revoked is not None:
            newest = None
        seconds = max(_seconds_left(self._opening_principal), 0.0 if newest is None else _seconds_left(newest))
        if seconds <= 0:
            self._end()
        else:
            pause = REVOKED_SECONDS if self._opening_principal.is_revoked is not None else CHECK_SECONDS
            self._timer = asyncio.get_running_loop().call_later(min(seconds, pause), self.check)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _seconds_left(token: Principal) -> float:
    if token.is_revoked is not None and token.is_revoked():
        return 0.0
    return math.inf if token.expires is None else token.expires - time.time()

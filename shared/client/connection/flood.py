"""How fast a server may tell what nobody has asked for, before it is read no faster.

What is not read fills the pipe or the socket, so the server waits, and nobody else: each notification costs whoever
reads it time, and a gateway reads for many. Answers wait behind it, but only those of that server.
"""

import logging
from collections.abc import Sequence

from ...protocol.wire.jsonrpc import Failure, Message, Notification, Response

_log = logging.getLogger("shared.client.flood")

PER_SECOND, BURST = 100, 1_000
"""Notifications that a list has changed, of which one says as much as many; of all else 50 times as many."""
_OTHERS = 0.02
LONGEST_PAUSE = 1.0
"""Seconds: a server that is alive is to be heard often enough to be known for that."""


class Flood:
    """What one server has told lately."""

    def __init__(self) -> None:
        self._level = 0.0
        self._at = 0.0
        self._has_warned = False

    def pause(self, messages: Sequence[Message], now: float) -> float:
        """Seconds to wait after these messages, before the next are read. The log tells once of a server that has to
        wait."""
        cost = sum(map(_cost, messages))
        if not cost:
            return 0.0
        self._level = max(self._level - (now - self._at) * PER_SECOND, 0.0) + cost
        self._at = now
        pause = min((self._level - BURST) / PER_SECOND, LONGEST_PAUSE)
        if pause <= 0:
            return 0.0
        # What it has waited for is not held against it again.
        self._level = min(self._level, BURST + PER_SECOND * LONGEST_PAUSE)
        if not self._has_warned:
            self._has_warned = True
            _log.warning("a server reports changes too often, and is read more slowly: its own answers come late")
        return pause


def _cost(message: Message) -> float:
    if isinstance(message, Response | Failure):
        return 0.0
    is_list = isinstance(message, Notification) and message.method.endswith("/list_changed")
    return 1.0 if is_list else _OTHERS

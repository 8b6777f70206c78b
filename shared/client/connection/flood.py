"""The rate at which a server may send unrequested notifications before it is read more slowly.

Unread data fills the pipe or the socket, so only the server waits. This protects the reader, such as a gateway that
reads for many clients, since each notification costs time. Answers wait behind the notifications, but only answers
from the same server.
"""

import logging
from collections.abc import Sequence

from ...protocol.wire.jsonrpc import Failure, Message, Notification, Response

_log = logging.getLogger("shared.client.flood")

PER_SECOND, BURST = 100, 1_000
"""The rate and burst of notifications about changed lists, where one is as good as many. For other notifications
the limits are 50 times as high."""
_OTHER_WEIGHT = 0.02
"""The cost of a notification about anything else: a fiftieth."""
MAX_PAUSE_SECONDS = 1.0
"""The longest pause in seconds: a server must be read often enough to be recognized as alive."""


class Flood:
    """The rate of recent messages of one server."""

    def __init__(self) -> None:
        self._level = 0.0
        self._updated_at = 0.0
        self._has_warned = False

    def pause(self, messages: Sequence[Message], now: float) -> float:
        """Return the seconds to wait after these messages before the next are read. The first pause is logged."""
        cost = sum(map(_cost, messages))
        if not cost:
            return 0.0
        self._level = max(self._level - (now - self._updated_at) * PER_SECOND, 0.0) + cost
        self._updated_at = now
        pause = min((self._level - BURST) / PER_SECOND, MAX_PAUSE_SECONDS)
        if pause <= 0:
            return 0.0
        # Messages for which the server has waited do not make it wait again.
        self._level = min(self._level, BURST + PER_SECOND * MAX_PAUSE_SECONDS)
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "a server sends too many notifications, so its messages are read more slowly, and answers are delayed"
            )
        return pause


def _cost(message: Message) -> float:
    if isinstance(message, Response | Failure):
        return 0.0
    is_list = isinstance(message, Notification) and message.method.endswith("/list_changed")
    return 1.0 if is_list else _OTHER_WEIGHT

"""A limit on the rate of requests and notifications from a server, beyond which the client reads more slowly.

This protects the client, for example a gateway that reads for many clients, since each notification takes time.
Unread data fills the pipe or the socket, so that the server has to wait. Answers of this server are then delayed too,
but not those of other servers.
"""

import logging
from collections.abc import Sequence

from ...protocol.wire.jsonrpc import Failure, Message, Notification, Response

_log = logging.getLogger("shared.client.flood")

PER_SECOND, BURST = 100, 1_000
"""The maximum rate and burst of notifications about changed lists, which all say the same. For other messages the
limits are 50 times as high."""
_OTHER_WEIGHT = 0.02
"""The cost of any other message; a notification about a changed list costs 1."""
MAX_PAUSE_SECONDS = 1.0
"""The longest pause in seconds. It must be short, because a server from which nothing is read seems to be dead."""


class Flood:
    """Measures the rate of messages from one server."""

    def __init__(self) -> None:
        self._level = 0.0
        self._updated_at = 0.0
        self._has_warned = False

    def count(self, messages: Sequence[Message], now: float) -> float:
        """Count `messages`, and return the seconds to wait before more are read. The first pause is logged."""
        cost = sum(map(_cost, messages))
        if not cost:
            return 0.0
        self._level = max(self._level - (now - self._updated_at) * PER_SECOND, 0.0) + cost
        self._updated_at = now
        pause = min((self._level - BURST) / PER_SECOND, MAX_PAUSE_SECONDS)
        if pause <= 0:
            return 0.0
        # The excess that this pause makes up for is not counted again.
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

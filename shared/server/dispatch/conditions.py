"""Conditions: lasting problems that prevent a server from working as its user expects, such as a folder that can't be
watched, or files that can't be read.

A condition is a log message that belongs to no call. When the condition begins, all sessions that want its log level
receive the message. A client that sets its log level later receives the message after that request: with
`logging/setLevel`, or in the stateless era `server/discover`. Problems of a single call are reported with
`Context.log`.
"""

from collections.abc import Callable, MutableMapping

from ...protocol.identity import LogMessage
from ...protocol.types.client import LogLevel

_POLLING = "polling every second, because the system reports no changes"


class Conditions:
    """The conditions of one run, for use in its event loop only. `logger` is the logger's name in their messages."""

    def __init__(self, logger: str, announce: Callable[[LogMessage], None]) -> None:
        self._logger = logger
        self._announce = announce
        self.active: MutableMapping[str, LogMessage] = {}
        """The current conditions, by key. Servers in several processes replace it before a peer connects."""

    def begin(self, key: str, level: LogLevel, text: str) -> None:
        """Begin a condition with that key and text, and announce it; an earlier one with the same key is replaced.
        Does nothing if the same condition has begun before. The text must not contain secrets, or paths that clients
        may not know."""
        message = LogMessage(level, text, self._logger)
        if self.active.get(key) != message:
            self.active[key] = message
            self._announce(message)

    def set_polling(self, is_polled: bool) -> None:
        """Begin or end the condition that watched resources are polled."""
        if is_polled:
            self.begin("polling", "notice", _POLLING)
        else:
            self.end("polling")

    def end(self, key: str) -> None:
        """End the condition with that key, if there is one. This is not announced."""
        self.active.pop(key, None)

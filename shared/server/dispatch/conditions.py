"""Lasting conditions that prevent a server from working as its user expects: a folder that can't be watched, files
that can't be read.

Each condition is a log message that belongs to no call. When the condition begins, the message is sent to all
sessions with that log level. A client that sets a level later receives the message with that request:
`logging/setLevel`, or without a handshake `server/discover`. Problems of one call only are reported by `Context.log`.
"""

from collections.abc import Callable, MutableMapping

from ...protocol.identity import LogMessage
from ...protocol.types.client import LogLevel

_POLLING = "polling every second, because the system reports no changes"


class Conditions:
    """The conditions of one running server, whose name is their logger. To be used only in the server's event
    loop."""

    def __init__(self, logger: str, announce: Callable[[LogMessage], None]) -> None:
        self._logger = logger
        self._announce = announce
        self.active: MutableMapping[str, LogMessage] = {}
        """The current conditions, by key. If the mapping is shared with other processes, it is replaced before the
        first peer connects."""

    def begin(self, key: str, level: LogLevel, text: str) -> None:
        """Begin the condition `text`, replacing any condition under `key`; it is announced once. The text must not
        contain secrets, or paths that clients may not know."""
        message = LogMessage(level, text, self._logger)
        if self.active.get(key) != message:
            self.active[key] = message
            self._announce(message)

    def set_polling(self, is_polled: bool) -> None:
        """Set whether some or all watched resources are polled."""
        if is_polled:
            self.begin("polling", "notice", _POLLING)
        else:
            self.end("polling")

    def end(self, key: str) -> None:
        """End the condition, if it exists, without an announcement."""
        self.active.pop(key, None)

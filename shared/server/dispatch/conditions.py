"""What keeps a server from working as its user expects, for as long as that lasts: a folder that can't be watched,
files that can't be read.

Each condition is a log message that belongs to no call. When it begins it goes to all sessions that asked for its
level; who asks for a level later is told with that request: `logging/setLevel`, or without a handshake
`server/discover`. What concerns one call only is told by `Context.log`.
"""

from collections.abc import Callable, MutableMapping

from ...protocol.identity import LogMessage
from ...protocol.types.client import LogLevel

_POLLING = "what is watched is looked at every second: no notices of its changes come"


class Conditions:
    """The conditions of one running server, which all have its name as their logger. For its event loop only."""

    def __init__(self, logger: str, announce: Callable[[LogMessage], None]) -> None:
        self._logger = logger
        self._announce = announce
        self.standing: MutableMapping[str, LogMessage] = {}
        """What holds now, by key; to be replaced, before peers come, where others have a say in it."""

    def begin(self, key: str, level: LogLevel, text: str) -> None:
        """From now on `text` holds, in place of what held under `key`; it is told once. No secrets, and no paths that
        clients may not know."""
        message = LogMessage(level, text, self._logger)
        if self.standing.get(key) != message:
            self.standing[key] = message
            self._announce(message)

    def set_polling(self, is_polled: bool) -> None:
        """Some or all of what is watched for clients is polled from now on, or none any more."""
        if is_polled:
            self.begin("polling", "notice", _POLLING)
        else:
            self.end("polling")

    def end(self, key: str) -> None:
        """It holds no longer, if it did; nobody is told."""
        self.standing.pop(key, None)

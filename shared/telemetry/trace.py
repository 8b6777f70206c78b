"""The trace: every message, as a JSON line in a file, for finding errors.

Secrets, recognized by their name or their form in a text, are not written. The file is readable by its owner only.

Messages that we refused to understand are under "refused", with their answer. If the file can't be written any more
only the trace ends.
"""

import logging
import os
import re
import stat
import time
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from ..protocol.session.events import Outgoing
from ..protocol.wire.codec import encode
from ..protocol.wire.jsonrpc import Malformed, Message

log = logging.getLogger("shared.trace")

_SECRET = re.compile(
    r"tokens?$|secret|pass(w|phrase)|authorization|api[-_]?key|private[-_]?key|cookie|credential", re.IGNORECASE
)
_NOT_SECRET = frozenset({"progressToken", "maxTokens"})
_HIDDEN = "[redacted]"
_IN_TEXT = (
    (re.compile(r"\b(bearer|authorization\W{1,4}\w+)\s+[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1 {_HIDDEN}"),
    (re.compile(r"(://[^\s/:@]+:)[^\s/@]+(?=@)"), rf"\1{_HIDDEN}"),
)


class Trace:
    """An open trace file. Raises OSError if it can't be opened, ValueError if it is not a regular file."""

    def __init__(self, path: Path) -> None:
        # Non-blocking, because opening a named pipe without a reader would block here for ever.
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0), 0o600)
        self._file = os.fdopen(fd, "ab", buffering=0)
        self.about: dict[str, str] = {}
        """Fields that are added to every line."""
        try:
            claim(fd, path)
        except (OSError, ValueError):
            self._file.close()
            raise

    def of(self, server: str) -> "Trace":
        """Return this trace for one of several servers: its lines name it."""
        other = copy(self)
        other.about = {"server": server}
        return other

    def received(self, message: Message) -> None:
        """Write a received message."""
        self._write("received", message)

    def sent(self, outgoing: Sequence[Outgoing]) -> None:
        """Write sent messages."""
        for item in outgoing:
            if item.message is not None:
                self._write("sent", item.message)

    def _write(self, direction: str, message: Message) -> None:
        if self._file.closed:
            return
        try:
            content = redacted(from_json(encode(message)))
        except ValueError as error:
            content = f"[{error}]"
        what = "refused" if isinstance(message, Malformed) else direction
        try:
            self._file.write(to_json({"time": round(time.time(), 6), **self.about, what: content}) + b"\n")
        except OSError as error:
            log.error("the trace ends here: %s", error)
            self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def claim(fd: int, path: Path) -> None:
    """Make the file that was opened at `path` readable by the owner only. Raises ValueError if it is not a regular
    file, or is used by the protocol."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path} is not a regular file")
    # For example /dev/stdout: each line would be a message to the client.
    if any(os.path.samestat(status, os.fstat(standard)) for standard in (0, 1)):
        raise ValueError(f"{path} is used for the protocol")
    if hasattr(os, "fchmod"):
        # The mode above applies to a new file only.
        os.fchmod(fd, 0o600)


def redacted(value: Any) -> Any:
    """Return `value` with "[redacted]" wherever a key sounds like a secret, or a text looks like one."""
    match value:
        case dict():
            return {key: _HIDDEN if _is_secret(key) else redacted(item) for key, item in value.items()}
        case list():
            return [redacted(item) for item in value]
        case str():
            for pattern, replacement in _IN_TEXT:
                value = pattern.sub(replacement, value)
            return value
        case _:
            return value


def _is_secret(key: str) -> bool:
    return _SECRET.search(key) is not None and key not in _NOT_SECRET

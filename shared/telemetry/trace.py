"""The trace: a file with every message as a line of JSON, for finding errors.

Values that look like secrets, by their name or their form, are not written. Only the owner can read the file. Of a
large message, only the beginning is written, with a note of how much is left out: looking for secrets in all of it
would block the event loop.

A message that was refused as invalid has the key "refused". If the file can no longer be written, the trace ends, and
the server continues.
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

from pydantic_core import from_json

from ..protocol.session.events import Outgoing
from ..protocol.wire.codec import json_value
from ..protocol.wire.jsonrpc import Malformed, Message, json_of

log = logging.getLogger("shared.trace")

_SECRET = re.compile(
    r"tokens?$|secret|pass(w|phrase)|authorization|api[-_]?key|private[-_]?key|cookie|credential", re.IGNORECASE
)
_NOT_SECRET = frozenset({"progressToken", "maxTokens"})
_HIDDEN = "[redacted]"
_IN_HEADER = re.compile(r"\b(bearer|authorization\W{1,4}\w+)\s+[\w.~+/=-]{8,}", re.IGNORECASE)
_MIN_LENGTH = 15
"""Minimum length of a string that is searched for credentials in headers."""
_IN_URL = re.compile(r"(://[^\s/:@]+:)[^\s/@]+(?=@)")
_MAX_NAME_LENGTH = 1_000
"""Maximum number of characters of a name that are searched; and of the text after the written part of a string, since
a secret may be recognized only with what follows."""
MAX_VALUES = 2_000
"""Maximum number of values of one message, or of the arguments of one call, that are written."""
MAX_TEXT = 262_144
"""Maximum total number of characters of these values."""


class Trace:
    """An open trace file. Creating this raises OSError if it can't be opened, and ValueError if it is not a regular
    file."""

    def __init__(self, path: Path) -> None:
        # O_NONBLOCK, because opening a named pipe that nobody reads would otherwise block forever.
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0), 0o600)
        self._file = os.fdopen(fd, "ab", buffering=0)
        self.extra_fields: dict[str, str] = {}
        """Fields that are added to every line."""
        try:
            protect_file(fd, path)
        except (OSError, ValueError):
            self._file.close()
            raise

    def for_server(self, server: str) -> "Trace":
        """Return a trace for one of several servers that writes to the same file, with the name of the server in its
        lines."""
        trace = copy(self)
        trace.extra_fields = {"server": server}
        return trace

    def on_received(self, message: Message) -> None:
        """Write a received message."""
        self._write("received", message)

    def on_sent(self, outgoing: Sequence[Outgoing]) -> None:
        """Write sent messages."""
        for item in outgoing:
            if item.message is not None:
                self._write("sent", item.message)

    def _write(self, direction: str, message: Message) -> None:
        if self._file.closed:
            return
        key = "refused" if isinstance(message, Malformed) else direction
        entry = {"time": round(time.time(), 6), **self.extra_fields}
        try:
            line = json_of({**entry, key: redact(json_value(message))})
        except (ValueError, RecursionError) as error:
            line = json_of({**entry, key: f"[{error}]"})
        try:
            self._file.write(line + b"\n")
        except OSError as error:
            log.error("the trace ends here: %s", error)
            self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def protect_file(fd: int, path: Path) -> None:
    """Make a file, which was opened at `path` as `fd`, readable by its owner only. Raises ValueError if it is not a
    regular file, or if it is stdin or stdout."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path} is not a regular file")
    # A client would read the lines in /dev/stdout as messages.
    if any(os.path.samestat(status, os.fstat(standard)) for standard in (0, 1)):
        raise ValueError(f"{path} is used for the protocol")
    if hasattr(os, "fchmod"):
        # The mode with which it was opened applies only to a new file.
        os.fchmod(fd, 0o600)


def redact(value: Any) -> Any:
    """Return `value` with "[redacted]" wherever a key or a string looks like a secret, and with a note instead of
    anything beyond the limits of `Redaction`. Raises ValueError for a value that JSON can't express."""
    return Redaction().redact(value)


class Redaction:
    """The redaction of one value: at most `MAX_VALUES` values and `MAX_TEXT` characters."""

    def __init__(self) -> None:
        self._values_left, self._characters_left = MAX_VALUES, MAX_TEXT
        self.is_cut = False
        """True if something was omitted."""

    def redact(self, value: Any) -> Any:
        """Return `value`, or a part of it, redacted."""
        self._values_left -= 1
        match value:
            case str():
                return self._redact_text(value)
            case dict():
                redacted: dict[str, Any] = {}
                for number, (key, item) in enumerate(value.items()):
                    if self._values_left <= 0 or self._characters_left <= 0:
                        redacted[self._note_omission(len(value) - number)] = None
                        break
                    # Search the end of a name, even of one that is too long to be written.
                    name, end = self._redact_text(str(key)), str(key)[-_MAX_NAME_LENGTH:]
                    is_secret = _SECRET.search(end) is not None and end not in _NOT_SECRET
                    redacted[name] = _HIDDEN if is_secret else self.redact(item)
                return redacted
            case list() | tuple():
                items = [self.redact(item) for item in value if self._values_left > 0]
                return items if len(items) == len(value) else [*items, self._note_omission(len(value) - len(items))]
            case None | bool() | int() | float():
                return value
            case _:
                return self.redact(from_json(json_of(value)))

    def _redact_text(self, text: str) -> str:
        limit = self._characters_left
        self._characters_left -= min(len(text), limit)
        if len(text) <= limit:
            return _hide_secrets(text)
        # Search some of the following text too, since a secret at the end may be recognized only with it.
        return _hide_secrets(text[: limit + _MAX_NAME_LENGTH])[:limit] + self._note_omission(
            len(text) - limit, " characters"
        )

    def _note_omission(self, count: int, unit: str = "") -> str:
        self.is_cut = True
        return f"[{count}{unit} left out]"


def _hide_secrets(text: str) -> str:
    # Most texts contain none of these words, and searching for a word is much faster than a regular expression.
    if "://" in text:
        text = _IN_URL.sub(rf"\1{_HIDDEN}", text)
    if len(text) >= _MIN_LENGTH and ("bearer" in (lower := text.lower()) or "authorization" in lower):
        text = _IN_HEADER.sub(rf"\1 {_HIDDEN}", text)
    return text

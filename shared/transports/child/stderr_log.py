"""The stderr of a child process as log records, one per line, within limits.

A server may write any amount to its stderr, which is not a failure (2025-11-25, Transports, stdio). This output must
neither exhaust the client's memory nor drown its other log records.
"""

import logging
import time
from collections.abc import Callable

from ...text import escape

MAX_LINE_BYTES = 8_192
"""The maximum length of a logged line in bytes; the lines of a traceback are shorter."""
MAX_LINES_PER_SECOND = 100
"""The maximum number of lines logged in a second; the rest are counted. More would not help anyone, and logging this
many costs little."""

log = logging.getLogger("shared.transports.process")


class StderrLog:
    """Logs the lines of one child, each prefixed with `name`."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._line = bytearray()
        self._is_truncated = False
        self._second_began = clock()
        self._line_count = 0
        self.last_line = ""
        """The last logged line that is not blank."""

    def feed(self, chunk: bytes) -> None:
        """Log the lines that `chunk` completes."""
        first, *others = chunk.split(b"\n")
        self._append(first)
        for other in others:
            self._end_line()
            self._append(other)

    def end(self) -> None:
        """Log an unfinished line, and the number of omitted lines."""
        if self._line:
            self._end_line()
        self._begin_second()

    def _append(self, part: bytes) -> None:
        room = MAX_LINE_BYTES - len(self._line)
        self._line += part[:room]
        self._is_truncated = self._is_truncated or len(part) > room

    def _end_line(self) -> None:
        if self._clock() - self._second_began >= 1:
            self._begin_second()
        self._line_count += 1
        if self._line_count <= MAX_LINES_PER_SECOND:
            text = escape(self._line.removesuffix(b"\r").decode("utf-8", "replace").expandtabs(4))
            log.info("%s: %s%s", self._name, text, " ..." if self._is_truncated else "")
            self.last_line = text.strip() or self.last_line
        self._line.clear()
        self._is_truncated = False

    def _begin_second(self) -> None:
        """Log how many lines of the last second were omitted, and count from 0 again."""
        if self._line_count > MAX_LINES_PER_SECOND:
            log.info("%s: lines omitted: %d", self._name, self._line_count - MAX_LINES_PER_SECOND)
        self._second_began = self._clock()
        self._line_count = 0

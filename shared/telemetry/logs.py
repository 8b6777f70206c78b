"""Log lines on stderr: as text for people, or as JSON for programs that collect logs.

A host may start a server with a stderr that it never reads. Writing to it would then block, so a separate thread does
that. While the thread is blocked, a limited number of lines waits, and further ones are dropped and counted. So
logging never delays the protocol. The thread starts with the first line and does not keep the process alive.
"""

import logging
import os
import threading
from collections import deque
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json

from ..tracing.trace_context import current

server_name: ContextVar[str | None] = ContextVar("server_name", default=None)
"""The name of the server to which the current task belongs, for log lines; None if there is only one."""

MAX_WAITING = 10_000
"""Maximum number of lines that wait while stderr is blocked."""
FLUSH_SECONDS = 0.5
"""Seconds that the program waits at its end until the last lines are written."""


class LogThread(logging.Handler):
    """Writes log lines to a file descriptor, without ever waiting for it."""

    def __init__(self, fd: int = 2) -> None:
        super().__init__()
        self._fd = fd
        self._lines: deque[bytes] = deque()
        self._dropped = 0
        self._is_writing = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record for writing; drop and count it if too many lines are waiting."""
        line = self._encode(record)
        with self._changed:
            if len(self._lines) < MAX_WAITING:
                self._lines.append(line)
            else:
                self._dropped += 1
            self._changed.notify_all()
            # After a fork, the child process has no such thread, although this object says so.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._write_lines, name="log", daemon=True)
                self._thread.start()

    def flush(self) -> None:
        """Wait until all lines are written, for at most `FLUSH_SECONDS`. Python calls this when the program ends."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._lines or self._is_writing), FLUSH_SECONDS)

    def _write_lines(self) -> None:
        while True:
            line = self._next_line()
            try:
                while line:
                    # Not by sys.stderr: a thread that is blocked there at exit would hold a lock that Python needs.
                    line = line[os.write(self._fd, line) :]
            except OSError:
                continue

    def _next_line(self) -> bytes:
        with self._changed:
            self._is_writing = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._lines)
            self._is_writing = True
            dropped, self._dropped = self._dropped, 0
            line = self._lines.popleft()
        if not dropped:
            return line
        text = "%d lines were dropped, because no one read stderr"
        fields = {"name": "shared.logs", "levelname": "WARNING", "msg": text, "args": (dropped,)}
        return self._encode(logging.makeLogRecord(fields)) + line

    def _encode(self, record: logging.LogRecord) -> bytes:
        return self.format(record).encode("utf-8", "backslashreplace") + b"\n"


class _Text(logging.Formatter):
    def __init__(self, worker: int | None = None) -> None:
        worker_name = "" if worker is None else f" [worker {worker}]"
        super().__init__(f"%(asctime)s %(levelname)s %(name)s{worker_name}%(server)s%(trace)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        server = server_name.get()
        record.server = "" if server is None else f" [{server}]"
        span = current.get()
        record.trace = "" if span is None else f" trace_id={span.trace_id} span_id={span.span_id}"
        return super().format(record)


class _Json(logging.Formatter):
    def __init__(self, worker: int | None = None) -> None:
        super().__init__()
        self._worker = worker

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self._worker is not None:
            line["worker"] = self._worker
        server = server_name.get()
        if server is not None:
            line["server"] = server
        span = current.get()
        if span is not None:
            line |= {"trace_id": span.trace_id, "span_id": span.span_id}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        # Python represents bytes in file names that are not UTF-8 as lone surrogates, which JSON can't represent.
        for key, value in line.items():
            if isinstance(value, str):
                line[key] = value.encode("utf-8", "backslashreplace")
        return to_json(line).decode()


def set_up_logging(level: str, style: str, worker: int | None = None) -> None:
    """Write log records of `level` and above, and Python's warnings, to stderr. `style` is "text" or "json". If this
    is one of several processes that serve the same port, `worker` is its number, which each line then contains."""
    handler = LogThread()
    handler.setFormatter(_Json(worker) if style == "json" else _Text(worker))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)

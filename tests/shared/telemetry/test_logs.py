"""Log lines: whole on stderr, without blocking the program."""

import json
import logging
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from pathlib import Path

import pytest

from shared.telemetry import logs
from shared.telemetry.logs import LogThread
from shared.tracing.trace_context import TraceContext, current
from tests.wire import PATIENCE

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def logger(name: str) -> Iterator[tuple[logging.Logger, LogThread, int]]:
    """A logger that writes to a pipe, its handler, and the read end of the pipe."""
    inbox, outbox = os.pipe()
    handler, made = LogThread(outbox), logging.Logger(name)
    made.addHandler(handler)
    try:
        yield made, handler, inbox
    finally:
        with suppress(OSError):
            os.close(inbox)
        handler.flush()
        os.close(outbox)


def read_until(inbox: int, end: bytes) -> str:
    text = b""
    while end not in text:
        assert select.select([inbox], [], [], PATIENCE)[0], text
        text += os.read(inbox, 65_536)
    return text.decode()


def test_lines_keep_their_order() -> None:
    with logger("order") as (log, handler, inbox):
        for number in range(100):
            log.warning("line %d", number)
        handler.flush()
        text = os.read(inbox, 65_536).decode()
        assert text.splitlines() == [f"line {number}" for number in range(100)]


def test_an_unread_pipe_does_not_block_the_program() -> None:
    with logger("full") as (log, _, inbox):
        for number in range(logs.MAX_WAITING + 3_000):
            log.warning("%06d %s", number, "x" * 50)
        text = read_until(inbox, b"were dropped, because no one read stderr\n")
        numbers = [int(line.split()[0]) for line in text.splitlines() if line.endswith("x")]
        assert numbers == list(range(len(numbers)))


def test_flush_does_not_wait_for_an_unread_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "FLUSH_SECONDS", 0.01)
    with logger("end") as (log, handler, _):
        log.warning("x" * 200_000)
        handler.flush()


def test_a_closed_pipe_is_ignored() -> None:
    with logger("gone") as (log, handler, inbox):
        os.close(inbox)
        for _ in range(3):
            log.warning("anybody?")
            handler.flush()


def test_the_thread_of_the_handler_is_a_daemon() -> None:
    with logger("daemon") as (log, handler, _):
        before = set(threading.enumerate())
        log.warning("x")
        handler.flush()
        assert all(thread.daemon for thread in set(threading.enumerate()) - before)


SCRIPT = r"""
import logging, sys, warnings
from shared.telemetry.logs import set_up_logging
set_up_logging(*sys.argv[1:])
log = logging.getLogger("here")
log.debug("quiet")
log.warning("two\nlines %s", "\udcff \u2028 \x00")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("why")
warnings.warn("old")
"""


def output_of(*arguments: str) -> str:
    command = [sys.executable, "-c", SCRIPT, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=PATIENCE, check=True)
    assert done.stdout == b""
    return done.stderr.decode()


@pytest.mark.slow
def test_json_lines_are_valid_json() -> None:
    first, second, third = [json.loads(line) for line in output_of("warning", "json").split("\n")[:-1]]
    assert first == {
        "time": first["time"],
        "level": "warning",
        "logger": "here",
        "message": "two\nlines \\udcff \u2028 \x00",
    }
    assert first["time"].endswith("+00:00")
    assert "ZeroDivisionError" in second["exception"]
    assert (third["logger"], "old" in third["message"]) == ("py.warnings", True)


@pytest.mark.parametrize("style", ["text", "json"])
def test_lines_name_the_server_and_the_worker(style: str) -> None:
    with logger("several") as (log, handler, inbox):
        # The formatter that `set_up_logging` would choose for the whole process.
        handler.setFormatter(logs._Json(2) if style == "json" else logs._Text(2))
        log.warning("one")
        Context().run(lambda: (logs.server_name.set("sqlite"), log.warning("two")))
        handler.flush()
        first, second = os.read(inbox, 65_536).decode().splitlines()
    assert "sqlite" not in first
    if style == "json":
        line = json.loads(second)
        assert (line["server"], line["worker"]) == ("sqlite", 2)
    else:
        assert first.endswith("WARNING several [worker 2]: one")
        assert "sqlite" in second


@pytest.mark.slow
def test_text_lines_follow_the_level() -> None:
    output = output_of("error", "text")
    assert "ERROR here: why" in output
    assert "two" not in output
    assert "quiet" in output_of("debug", "text")


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_line_names_its_span(style: str) -> None:
    formatter = logs._Json() if style == "json" else logs._Text()  # as above
    record = logging.makeLogRecord({"name": "a", "levelname": "INFO", "msg": "b"})

    def line() -> str:
        current.set(TraceContext("1" * 32, "2" * 16))
        return formatter.format(record)

    formatted = Context().run(line)
    named = {"trace_id": "1" * 32, "span_id": "2" * 16}
    if style == "json":
        assert named.items() <= json.loads(formatted).items()
    else:
        assert formatted.endswith(f" a trace_id={named['trace_id']} span_id={named['span_id']}: b")
    assert "trace_id" not in formatter.format(record)

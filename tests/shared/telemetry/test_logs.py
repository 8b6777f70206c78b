"""Log lines arrive whole on stderr, and never hold up who writes them."""

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
    """A logger whose lines go into a pipe, and the end to read them from."""
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
    said = b""
    while end not in said:
        assert select.select([inbox], [], [], PATIENCE)[0], said
        said += os.read(inbox, 65_536)
    return said.decode()


def test_lines_come_in_order() -> None:
    with logger("order") as (log, handler, inbox):
        for number in range(100):
            log.warning("line %d", number)
        handler.flush()
        said = os.read(inbox, 65_536).decode()
        assert said.splitlines() == [f"line {number}" for number in range(100)]


def test_a_pipe_that_nobody_reads_holds_up_nobody() -> None:
    with logger("full") as (log, _, inbox):
        for number in range(logs.MAX_WAITING + 3_000):
            log.warning("%06d %s", number, "x" * 50)
        said = read_until(inbox, b"were dropped, because no one read stderr\n")
        numbers = [int(line.split()[0]) for line in said.splitlines() if line.endswith("x")]
        assert numbers == list(range(len(numbers)))


def test_the_end_does_not_wait_for_a_pipe_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "FLUSH_SECONDS", 0.01)
    with logger("end") as (log, handler, _):
        log.warning("x" * 200_000)
        handler.flush()


def test_nobody_there_is_no_reason_to_fail() -> None:
    with logger("gone") as (log, handler, inbox):
        os.close(inbox)
        for _ in range(3):
            log.warning("anybody?")
            handler.flush()


def test_its_thread_does_not_keep_the_process_alive() -> None:
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


def said_by(*arguments: str) -> str:
    command = [sys.executable, "-c", SCRIPT, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=PATIENCE, check=True)
    assert done.stdout == b""
    return done.stderr.decode()


@pytest.mark.slow
def test_json_lines_parse() -> None:
    first, second, third = [json.loads(line) for line in said_by("warning", "json").split("\n")[:-1]]
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
def test_lines_name_the_server_and_the_worker_where_there_are_several(style: str) -> None:
    with logger("several") as (log, handler, inbox):
        # What `set_up_logging` chooses, which is for a whole process.
        handler.setFormatter(logs._Json(2) if style == "json" else logs._Text(2))
        log.warning("one")
        Context().run(lambda: (logs.server_name.set("sqlite"), log.warning("two")))
        handler.flush()
        first, second = os.read(inbox, 65_536).decode().splitlines()
    assert "sqlite" not in first
    if style == "json":
        said = json.loads(second)
        assert (said["server"], said["worker"]) == ("sqlite", 2)
    else:
        assert first.endswith("WARNING several [worker 2]: one")
        assert "sqlite" in second


@pytest.mark.slow
def test_text_lines_and_levels() -> None:
    said = said_by("error", "text")
    assert "ERROR here: why" in said
    assert "two" not in said
    assert "quiet" in said_by("debug", "text")


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_line_names_the_span_that_it_belongs_to(style: str) -> None:
    formatter = logs._Json() if style == "json" else logs._Text()  # as above
    record = logging.makeLogRecord({"name": "a", "levelname": "INFO", "msg": "b"})

    def line() -> str:
        current.set(TraceContext("1" * 32, "2" * 16))
        return formatter.format(record)

    said = Context().run(line)
    named = {"trace_id": "1" * 32, "span_id": "2" * 16}
    if style == "json":
        assert named.items() <= json.loads(said).items()
    else:
        assert said.endswith(f" a trace_id={named['trace_id']} span_id={named['span_id']}: b")
    assert "trace_id" not in formatter.format(record)

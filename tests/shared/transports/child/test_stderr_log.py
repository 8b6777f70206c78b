"""`StderrLog`: whole lines, with limits on their length and rate."""

import pytest

from shared.transports.child.stderr_log import MAX_LINE_BYTES, MAX_LINES_PER_SECOND, StderrLog
from tests.clock import Clock


@pytest.fixture(autouse=True)
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")


@pytest.mark.parametrize("size", [1, 3, 100])
def test_lines_are_logged_whole_whatever_the_chunk_size(size: int, caplog: pytest.LogCaptureFixture) -> None:
    lines, text = StderrLog("server"), "one\r\n\n\ttwo é\nrest".encode()
    for start in range(0, len(text), size):
        lines.feed(text[start : start + size])
    assert caplog.messages == ["server: one", "server: ", "server:     two é"]
    lines.end()
    assert caplog.messages[3:] == ["server: rest"]


def test_a_long_line_is_truncated(caplog: pytest.LogCaptureFixture) -> None:
    lines = StderrLog("server")
    for _ in range(3):
        lines.feed(b"x" * MAX_LINE_BYTES)
    lines.feed(b"\nnext\n")
    assert caplog.messages == [f"server: {'x' * MAX_LINE_BYTES} ...", "server: next"]


def test_omitted_lines_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    lines = StderrLog("server", clock)
    lines.feed(b"x\n" * (MAX_LINES_PER_SECOND + 7))
    assert len(caplog.messages) == MAX_LINES_PER_SECOND
    clock.now = 1.0
    lines.feed(b"y\n")
    assert caplog.messages[MAX_LINES_PER_SECOND:] == ["server: lines omitted: 7", "server: y"]


def test_lines_omitted_last_are_counted_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    lines = StderrLog("server", Clock())
    lines.feed(b"x\n" * (MAX_LINES_PER_SECOND + 1))
    lines.end()
    assert caplog.messages[-1] == "server: lines omitted: 1"

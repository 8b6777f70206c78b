"""The status of a task, beside the output of a command."""

import sys

import pytest

from servers.bundle.terminal.progress import Bar, Status
from shared.client.tasks.following import read_state


class Shown(Bar):
    """A progress bar that only records."""

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[tuple[float, float | None, str | None]] = []

    def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Records the report."""
        self.reports.append((progress, total, message))


def _told(status: Status, message: str | None) -> None:
    more = {} if message is None else {"statusMessage": message}
    status.take(read_state("tasks/get", {"taskId": "t", "status": "working", **more}))


def test_task_status_without_a_terminal_is_a_line_per_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    lines, bar = list[str](), Shown()
    status = Status(lines.append, bar)
    _told(status, None)
    _told(status, "importing, 40%")
    assert lines == ["task working", "task working: importing, 40%"]
    assert bar.reports == []


def test_a_percentage_becomes_a_progress_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    reports = {
        "importing, 40%": (40, 100, "working: importing, 40%"),
        "importing": (0, None, "working: importing"),
        "99999%": (0, None, "working: 99999%"),
    }
    for message, report in reports.items():
        bar = Shown()
        _told(Status(lambda text: None, bar), message)
        assert bar.reports == [report]

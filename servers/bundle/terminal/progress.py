"""The progress of a call: a bar on a terminal; without a terminal, a line for each change of a task."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from shared.client.tasks.following import TaskState
from shared.text import plain

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """A progress bar. If stderr is a terminal, it appears with the first report, and is removed at the end."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Show the progress that the server has reported."""
        if not sys.stderr.isatty():
            return
        begins = self._progress is None
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            text = TextColumn("{task.description}", markup=False)
            console = Console(stderr=True, markup=False, emoji=False, highlight=False)
            columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), text)
            self._progress = Progress(*columns, console=console, transient=True)
            self._task = self._progress.add_task("")
        description = plain(message) if isinstance(message, str) else ""
        is_known = isinstance(total, int | float)
        self._progress.update(
            self._task, completed=progress, total=total if is_known else None, description=description
        )
        if begins:
            self._progress.start()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Hide the bar while other text is on the terminal."""
        if self._progress is not None:
            self._progress.stop()
        yield
        if self._progress is not None:
            self._progress.start()


class Status:
    """Shows the status of a task."""

    def __init__(self, say: Callable[[str], None], bar: Bar) -> None:
        self._say = say
        self._bar = bar

    def take(self, task: TaskState) -> None:
        """Show the new state of the task."""
        text = f"{task.status.replace('_', ' ')}{f': {task.message}' if task.message else ''}"
        if not sys.stderr.isatty():
            self._say(f"task {text}")
            return
        self._bar.report(task.percent or 0, None if task.percent is None else 100, text)

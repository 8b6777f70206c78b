"""How far a call is, as a bar on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from shared.kit.program import plain

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """Shown from the first report on, where stderr is a terminal, and gone at the end."""

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
        """Takes what the server reports."""
        if not sys.stderr.isatty():
            return
        begins = self._progress is None
        if self._progress is None:
            self._progress = _made()
            self._task = self._progress.add_task("")
        told = plain(message) if isinstance(message, str) else ""
        is_known = isinstance(total, int | float)
        self._progress.update(self._task, completed=progress, total=total if is_known else None, description=told)
        if begins:
            self._progress.start()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Takes the bar away while something else is on the terminal."""
        if self._progress is not None:
            self._progress.stop()
        yield
        if self._progress is not None:
            self._progress.start()


def _made() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    return Progress(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), text, console=console, transient=True)

"""Long-running work: its time limit and its progress."""

from typing import NamedTuple, Protocol


class Reached(NamedTuple):
    """The progress of a job."""

    done: int
    total: int | None
    """The final value of `done`; None if it is unknown."""
    words: str


class Job:
    """Work that may take longer than a single statement. The worker sets its progress, and others read it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        """Time limit."""
        self.reached: Reached | None = None


class Progress(Protocol):
    """Receives the progress of a piece of work, and can stop it."""

    def check(self) -> None:
        """Raise SqlError if it is time to stop."""

    def report(self, done: int, total: int | None, words: str) -> None:
        """Report the progress."""

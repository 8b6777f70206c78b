"""Work that takes a while: how long it may take, and how far it is."""

from typing import NamedTuple, Protocol


class Reached(NamedTuple):
    """How far a job is."""

    done: int
    total: int | None
    """Which `done` grows to; None where nobody knows."""
    words: str


class Job:
    """A piece of work that may take longer than a statement. Who does it says how far it is, and others look."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        """How long it may take."""
        self.reached: Reached | None = None


class Progress(Protocol):
    """Who is told how far a piece of work is, and when to stop it."""

    def check(self) -> None:
        """Raises SqlError where it is time to stop."""

    def tell(self, done: int, total: int | None, words: str) -> None:
        """Says how far it is."""

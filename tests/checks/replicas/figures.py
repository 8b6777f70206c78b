"""What the clients of a run have seen, counted for all of them together."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

__all__ = ["Figures"]

Row = tuple[str, str]


class Figures:
    """Counts, and how long it took whoever had failed to be served again."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        """Requests that came to nothing, by the reason."""
        self.outages: list[float] = []
        """Seconds from the first failure of a client to its next answer."""
        self.takeovers: list[float] = []
        """Seconds from the end of a stream to the error that another replica answered it with."""
        self.answers: list[float] = []
        """Seconds that requests took which were answered without any failure."""
        self.lagging: list[float] = []
        """Seconds from a change to the notice of it."""

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Takes the time of a request, if it is answered."""
        began = time.monotonic()
        yield
        self.answers.append(time.monotonic() - began)

    def rows(self) -> list[Row]:
        """All of them, for a table."""
        return [
            *((name, f"{count:,}") for name, count in sorted(self.counts.items())),
            *((f"failed: {why}", f"{count:,}") for why, count in self.failures.most_common()),
            *_spread("an answer", self.answers),
            *_spread("a notice of a change", self.lagging),
            *_spread("from a failure to the next answer", self.outages),
            *_spread("from a broken stream to its answer by others", self.takeovers),
        ]


def _spread(name: str, seconds: list[float]) -> Iterator[Row]:
    if seconds:
        ordered = sorted(seconds)
        last = ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)]
        yield name, f"median {median(ordered):.3f} s, 99th of 100 {last:.3f} s, at most {ordered[-1]:.3f} s"

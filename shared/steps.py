"""Long work as a generator, which yields wherever other work may run in between, and returns the result.

It takes a tenth of a second to read, check and log a large message, and would block the event loop for that time. So
functions that do this work return `Steps`. Async code runs them with `concurrency.py: run_in_turns`, which lets other
tasks run between the steps; other callers run all steps at once with `complete`.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""A generator of steps whose result has the type `T`."""


def complete(steps: Steps[T]) -> T:
    """Run all `steps` at once, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result

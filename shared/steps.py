"""Work in steps: a generator that yields wherever other work may come in between, and returns the result.

A large message takes a tenth of a second to read, check and log. Functions that do such work return `Steps`: an event
loop runs each step in a turn of its own (`concurrency.py: run_in_turns`), and other callers run all of them at once.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""The steps of work with a result of type `T`."""


def complete(steps: Steps[T]) -> T:
    """Run all `steps` at once, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result

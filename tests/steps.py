"""Work in steps, run to completion."""

from shared.steps import Steps, T


def counted(steps: Steps[T]) -> tuple[int, T]:
    """Returns the number of pauses between the steps, and the result."""
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return pauses, end.value
        pauses += 1

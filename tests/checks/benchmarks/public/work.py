"""What the tools of the public comparison do besides input and output: the same for every server in Python."""

from typing import Any


def fibonacci(n: int) -> int:
    """The number at that place, computed as slowly as the published benchmark does."""
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def upper(value: Any) -> Any:
    """The value with all its texts in upper case."""
    match value:
        case str():
            return value.upper()
        case list():
            return [upper(one) for one in value]
        case dict():
            return {key: upper(one) for key, one in value.items()}
    return value

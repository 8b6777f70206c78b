"""As much as one answer may tell, what is most useful first."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from pydantic_core import to_json

__all__ = ["Space"]

T = TypeVar("T")

_BETWEEN = 4
"""Bytes before a line: its end and its indentation."""


class Space:
    """The bytes of text that are left, as JSON."""

    def __init__(self, size: int) -> None:
        self.left = size

    def takes(self, line: str) -> bool:
        """Whether there is room for a line, which may be several; then it is used."""
        size = len(to_json(line)) + _BETWEEN * (1 + line.count("\n"))
        if size > self.left:
            return False
        self.left -= size
        return True

    def fitting(self, items: Iterable[T], line: Callable[[T], str]) -> tuple[list[T], int]:
        """Those items for whose lines there is room, and how many others there are."""
        taken: list[T] = []
        left_out = 0
        for item in items:
            if self.left > _BETWEEN and self.takes(line(item)):
                taken.append(item)
            else:
                left_out += 1
        return taken, left_out

    def share(self, parts: int) -> "Space":
        """One of so many equal parts of what is left, as a space of its own."""
        size = self.left // parts
        self.left -= size
        return Space(size)

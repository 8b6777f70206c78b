"""As much as one answer may tell, what is most useful first."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from pydantic_core import to_json

__all__ = ["Space"]

T = TypeVar("T")

_BETWEEN = 4
"""Bytes between two items and before a line."""


class Space:
    """The bytes that are left, as JSON, for data and its text together."""

    def __init__(self, size: int) -> None:
        self.left = size

    def takes(self, item: object, line: str) -> bool:
        """Whether there is room for both; then it is used."""
        size = len(to_json(item)) + len(to_json(line)) + _BETWEEN
        if size > self.left:
            return False
        self.left -= size
        return True

    def fitting(self, items: Iterable[T], line: Callable[[T], str]) -> tuple[list[T], int]:
        """Those items that there is room for, with their lines, and how many others there are."""
        taken: list[T] = []
        left_out = 0
        for item in items:
            if self.left > _BETWEEN and self.takes(item, line(item)):
                taken.append(item)
            else:
                left_out += 1
        return taken, left_out

    def share(self, parts: int) -> "Space":
        """One of so many equal parts of what is left, as a space of its own."""
        size = self.left // parts
        self.left -= size
        return Space(size)

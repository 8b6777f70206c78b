"""How much of a result is used up. What does not fit is left for the next page, instead of failing the whole."""

from json import JSONEncoder
from typing import NamedTuple

_json = JSONEncoder(ensure_ascii=False).encode


class Page(NamedTuple):
    """Which part of what there is to tell: `limit` items at most, in `max_bytes` of JSON, from `cursor` on."""

    limit: int
    max_bytes: int
    cursor: str | None = None


class Room:
    """The bytes that a result may have as JSON."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes
        self._empty = True

    def take(self, more: int, *texts: str) -> bool:
        """Takes `more` bytes and those of `texts`.

        False, and nothing is taken, where they do not fit. The first fits always, or there would be no going on.
        """
        cost = more + sum(len(_json(text).encode()) for text in texts)
        if cost > self._left and not self._empty:
            return False
        self._empty = False
        self._left -= cost
        return True

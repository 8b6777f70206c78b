"""What was made of files and is likely to be wanted again."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Cache"]

V = TypeVar("V")


class Cache(Generic[V]):
    """The values used last, up to a weight in all. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._lock = Lock()
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """The value, or None where there is none, or none any more."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: V, weight: int) -> None:
        """Keeps a value, in place of those that were not used for longest."""
        with self._lock:
            if key in self._values:
                self._left += self._values.pop(key)[1]
            self._values[key] = value, weight
            self._left -= weight
            while self._left < 0:
                _, (_, freed) = self._values.popitem(last=False)
                self._left += freed

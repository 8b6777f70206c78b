"""The memory of calls and their results, which several runs may share: each listener has one limit."""

from .portions import Portions
from .room import Room


class Memory:
    """The memory of the calls of one or several runs."""

    def __init__(self, limit: int) -> None:
        """`limit` is the maximum number of bytes of arguments and waiting results; large results on the way to
        clients may take half as much."""
        self.portions = Portions(limit)
        self.room = Room(limit // 2)

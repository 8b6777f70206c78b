"""The limit on the memory of calls and their results. All runs of one listener share it."""

from .portions import Portions
from .room import Room


class Memory:
    """The memory that the calls of one or several runs take."""

    def __init__(self, limit: int) -> None:
        """`limit` is the maximum number of bytes. Large results being sent may take half as many in addition."""
        self.portions = Portions(limit)
        """The bytes of arguments, and of results that wait to be sent."""
        self.room = Room(limit // 2)
        """The bytes of large results that are being sent."""

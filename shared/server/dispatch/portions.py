"""A limited quantity, such as memory, that clients share, so that a part of it always remains for further clients."""

from .room import Room


class Portions:
    """The amounts that clients have reserved of `limit`. A client may have at most as much as is still free; so a
    single client can have half of `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._by_client: dict[str, int] = {}

    def reserve(self, client: str, amount: int = 1) -> bool:
        """Reserve `amount` for the client until `release`. Return False if the client may not have it. If nothing is
        reserved, any amount is granted."""
        # A client may take at most half of what the others leave, so no number of clients can take everything.
        client_amount = self._by_client.get(client, 0) + amount
        if self._used and client_amount > self._limit - self._used:
            return False
        self._by_client[client] = client_amount
        self._used += amount
        return True

    def release(self, client: str, amount: int = 1) -> None:
        """Release that amount."""
        self._used -= amount
        client_amount = self._by_client.pop(client, 0) - amount
        if client_amount:
            self._by_client[client] = client_amount


class Memory:
    """The memory that the calls of one or several runs take."""

    def __init__(self, limit: int) -> None:
        """`limit` is the maximum number of bytes. Large results being sent may take half as many in addition."""
        self.portions = Portions(limit)
        """The bytes of arguments, and of results that wait to be sent."""
        self.room = Room(limit // 2)
        """The bytes of large results that are being sent."""

"""A quantity that clients share, of which nobody gets so much that none is left for others."""

from collections import Counter


class Portions:
    """How much of `limit` each client has: as much as is left for others at most, so alone half of it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._by_client: Counter[str] = Counter()

    def take(self, client: str, amount: int = 1) -> bool:
        """Takes so much, if the client may have it. What is more than half of all is had by who comes when nobody has
        anything."""
        # Half of what is free, and then half of that: no number of clients can be kept out by those who came first.
        if self._taken and self._by_client.get(client, 0) + amount > self._limit - self._taken:
            return False
        self._by_client[client] += amount
        self._taken += amount
        return True

    def give(self, client: str, amount: int = 1) -> None:
        """Gives so much back."""
        self._taken -= amount
        self._by_client[client] -= amount
        if not self._by_client[client]:
            del self._by_client[client]

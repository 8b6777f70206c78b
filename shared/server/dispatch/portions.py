"""A quantity that clients share; part of it always remains available to other clients."""


class Portions:
    """The portion of `limit` that each client holds: at most as much as remains for other clients, so a single client
    can hold half of it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._by_client: dict[str, int] = {}

    def reserve(self, client: str, amount: int = 1) -> bool:
        """Reserve that amount for the client until `release`. Return False if the client may not have it. More than
        half of the limit is granted only while nothing is reserved."""
        # Each client may have half of the free part, so early clients, however many, can't keep out later ones.
        own = self._by_client.get(client, 0) + amount
        if self._used and own > self._limit - self._used:
            return False
        self._by_client[client] = own
        self._used += amount
        return True

    def release(self, client: str, amount: int = 1) -> None:
        """Release that amount."""
        self._used -= amount
        own = self._by_client.pop(client, 0) - amount
        if own:
            self._by_client[client] = own

"""What may become of a request but an answer, as a client has to tell it: may it be repeated, or may it have run?"""

from typing import Any

__all__ = ["Failed", "Lost", "MayHaveRun", "NotRun", "PeerError", "TooOld"]


class Failed(Exception):
    """A request has no result."""


class NotRun(Failed):
    """It was not begun, so that it may be repeated, whatever it is: nobody was reached, or 503 with `Retry-After`."""


class MayHaveRun(Failed):
    """Nobody knows what has become of it: it is repeated only where twice is as good as once."""


class PeerError(Failed):
    """It was answered with an error of the protocol."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']} {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]


class Lost(Failed):
    """404: the session is unknown."""


class TooOld(Failed):
    """400 to a client that comes back: what came after its last event is not kept, or the event is unknown."""

"""Waiting for what the client answers."""

import anyio

from ..protocol.jsonrpc import Failure, Response

__all__ = ["NO_ANSWER", "Waiter"]

NO_ANSWER = Failure(None, -32603, "the client ended its stream")
"""Stands for the answer of a client that will not answer any more."""


class Waiter:
    """Waits for one answer of the client's, which may come before anybody waits."""

    def __init__(self) -> None:
        self._settled = anyio.Event()
        self._answer: Response | Failure | None = None

    def settle(self, answer: Response | Failure) -> None:
        """Takes the answer; the first one counts."""
        if self._answer is None:
            self._answer = answer
            self._settled.set()

    async def wait(self) -> Response | Failure:
        """The answer, once it is there."""
        while self._answer is None:
            await self._settled.wait()
        return self._answer

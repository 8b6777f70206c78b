"""What the client answers to our questions, kept until somebody asks for it."""

from collections.abc import Iterable

from ..kit.signal import Signal
from ..protocol.wire.jsonrpc import Failure, RequestId, Response

__all__ = ["Answers"]

_NONE = Failure(None, -32603, "the client ended its stream")
"""Stands for the answer of a client that will not answer any more."""


class Answers:
    """The answers to the questions of one connection."""

    __slots__ = ("_by_id", "_come", "_finished")

    def __init__(self) -> None:
        self._by_id: dict[RequestId, Response | Failure | None] = {}
        self._come = Signal()
        self._finished = False

    def expect(self, ids: Iterable[int]) -> None:
        """Keeps the answers to our requests `ids` from now on, in whatever order they come, until `forget`."""
        self._by_id.update(dict.fromkeys(ids))

    def forget(self, ids: Iterable[int]) -> None:
        """No longer."""
        for id_ in ids:
            del self._by_id[id_]

    def settle(self, id: RequestId, answer: Response | Failure) -> None:
        """Takes an answer in, if it is expected."""
        if id in self._by_id:
            self._by_id[id] = answer
            self._come.wake()

    def finish(self) -> None:
        """The client will answer nothing more."""
        self._finished = True
        self._come.wake()

    async def wait(self, id: int) -> Response | Failure:
        """Waits for the answer to our request `id`, which is expected."""
        while (answer := self._by_id[id]) is None:
            if self._finished:
                return _NONE
            await self._come.wait()
        return answer

"""What several streams of one server have brought, until its client takes it."""

from collections.abc import Sequence

import anyio

from ....concurrency import Signal
from ....protocol.wire.jsonrpc import Message

ENOUGH = 256
"""Messages that wait for the client; who brings more waits until it has taken them."""


class Inbox:
    """Messages in the order in which they came."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._end: BaseException | None = None
        self._news = Signal()
        self._room = Signal()

    @property
    def is_over(self) -> bool:
        """Whether nothing more is added."""
        return self._end is not None

    async def put(self, message: Message) -> None:
        """Adds a message; waits while there are enough. After the end it is dropped."""
        if self._end is not None:
            return
        self._messages.append(message)
        self._news.wake()
        while len(self._messages) >= ENOUGH:
            await self._room.wait()

    def end(self, error: BaseException) -> None:
        """There will be no more: `take` raises `error` then. The first end counts."""
        self._end = self._end or error
        self._news.wake()

    async def take(self) -> Sequence[Message]:
        """All that is there; waits for at least one."""
        while not self._messages:
            if self._end is not None:
                raise self._end
            await self._news.wait()
        taken, self._messages = self._messages, []
        self._room.wake()
        return taken

    def close(self) -> None:
        """Drops what is there, and ends in order."""
        self._messages = []
        self._room.wake()
        self.end(anyio.EndOfStream())

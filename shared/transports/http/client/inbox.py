"""A queue of the messages that arrive on several streams of one server, from which the client takes them."""

from collections.abc import Sequence

import anyio

from ....concurrency import Signal
from ....protocol.wire.jsonrpc import Message

MAX_WAITING = 256
"""The number of waiting messages at which `put` begins to wait for the client."""


class Inbox:
    """A queue of messages in the order of their arrival."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._end: BaseException | None = None
        self._has_messages = Signal()
        self._has_room = Signal()

    @property
    def has_ended(self) -> bool:
        """True if the queue has ended."""
        return self._end is not None

    async def put(self, message: Message) -> None:
        """Add a message, and wait while the queue is full. After the end, the message is dropped."""
        if self._end is not None:
            return
        self._messages.append(message)
        self._has_messages.wake()
        while len(self._messages) >= MAX_WAITING:
            await self._has_room.wait()

    def end(self, error: BaseException) -> None:
        """End the queue: `take` raises `error` once the queue is empty. Only the first end takes effect."""
        self._end = self._end or error
        self._has_messages.wake()

    async def take(self) -> Sequence[Message]:
        """Return all messages; waits for at least one."""
        while not self._messages:
            if self._end is not None:
                raise self._end
            await self._has_messages.wait()
        messages, self._messages = self._messages, []
        self._has_room.wake()
        return messages

    def close(self) -> None:
        """Drop all messages, and end the queue cleanly."""
        self._messages = []
        self._has_room.wake()
        self.end(anyio.EndOfStream())

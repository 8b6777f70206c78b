"""One of several processes that serve the same port, and its channel to the parent process, which started them.

The channel is a socket with lines of JSON. A worker reports once that it serves, sends its counts on request and at
its end, and requests the counts of all. If the channel closes, the parent no longer exists, and the worker must end
too.
"""

import asyncio
import json
import socket
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import anyio

from .merged import from_json, to_json
from .metrics import Figures

ANSWER_SECONDS = 3.0
"""Seconds for the parent to send the counts of all workers: longer than it waits for any single worker."""
LAST_SECONDS = 1.0
"""Seconds that the end of a worker waits for its last counts to be sent."""
_CHUNK_BYTES = 65_536


class Totals(NamedTuple):
    """All processes that serve the port."""

    figures: Sequence[Figures]
    """Their total counts, including the counts of processes that have ended."""
    processes: Mapping[str, int]
    """Their process ids, by the number of the worker; the key of the parent is "parent"."""
    restarts: int
    """The number of workers that ended unexpectedly and were restarted."""


class Siblings:
    """A worker's view of the other workers."""

    def __init__(self, number: int, channel: socket.socket) -> None:
        """`channel` is the worker's end of the channel."""
        self.number = number
        """The number of this worker, from 1."""
        self.drain_seconds = 0.0
        """Seconds for the work in progress to finish at the end."""
        self.figures: Callable[[], Sequence[Figures]] = tuple
        """Returns the counts of this worker."""
        self._channel = channel
        self._channel.setblocking(False)
        self._sending = anyio.Lock()
        self._requested: dict[int, asyncio.Future[Totals]] = {}
        self._numbers = count()

    def began(self, text: str) -> None:
        """Report that requests are accepted from now on; `text` is the program's message about this."""
        # This is the first line and a short one, so the socket has room for it.
        self._channel.send(line(ready=text, drain=self.drain_seconds))

    async def attend(self, stop: Callable[[], None]) -> None:
        """Answer the parent until it no longer exists; then call `stop`."""
        loop, buffer = asyncio.get_running_loop(), b""
        try:
            while chunk := await loop.sock_recv(self._channel, _CHUNK_BYTES):
                *lines, buffer = (buffer + chunk).split(b"\n")
                for text in lines:
                    await self._heed(json.loads(text))
        except ConnectionError:
            pass
        stop()

    async def all(self) -> Totals:
        """Return the counts of all processes. Raises TimeoutError if the parent does not send them."""
        number = next(self._numbers)
        answer = self._requested[number] = asyncio.get_running_loop().create_future()
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                await self._send(line(ask=number))
                totals: Totals = await answer
        except ConnectionError as error:
            raise TimeoutError from error
        finally:
            del self._requested[number]
        return totals

    def end(self) -> None:
        """Send the parent the last counts."""
        self._channel.settimeout(LAST_SECONDS)
        try:
            # After a line ending, since a line may have been cut off.
            self._channel.sendall(b"\n" + line(figures=to_json(self.figures())))
        except OSError:
            return  # it no longer exists, or does not listen

    async def _heed(self, message: dict[str, Any]) -> None:
        if "tell" in message:
            await self._send(line(figures=to_json(self.figures())))
        elif (answer := self._requested.get(message["all"])) is not None and not answer.done():
            answer.set_result(Totals(from_json(message["figures"]), message["processes"], message["restarts"]))

    async def _send(self, data: bytes) -> None:
        async with self._sending:
            await asyncio.get_running_loop().sock_sendall(self._channel, data)


def line(**fields: Any) -> bytes:
    """Return the line for a message over the channel."""
    return json.dumps(fields).encode() + b"\n"

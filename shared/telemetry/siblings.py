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
        self._send_lock = anyio.Lock()
        self._requests: dict[int, asyncio.Future[Totals]] = {}
        self._numbers = count()

    def report_ready(self, text: str) -> None:
        """Report that requests are accepted from now on; `text` is the program's message about this."""
        # This is the first line and a short one, so the socket has room for it.
        self._channel.send(encode_message(ready=text, drain=self.drain_seconds))

    async def serve_parent(self, stop: Callable[[], None]) -> None:
        """Answer the parent until it no longer exists; then call `stop`."""
        loop, buffer = asyncio.get_running_loop(), b""
        try:
            while chunk := await loop.sock_recv(self._channel, _CHUNK_BYTES):
                *lines, buffer = (buffer + chunk).split(b"\n")
                for text in lines:
                    await self._handle(json.loads(text))
        except ConnectionError:
            pass
        stop()

    async def request_totals(self) -> Totals:
        """Return the counts of all processes. Raises TimeoutError if the parent does not send them."""
        number = next(self._numbers)
        answer = self._requests[number] = asyncio.get_running_loop().create_future()
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                await self._send(encode_message(ask=number))
                totals: Totals = await answer
        except ConnectionError as error:
            raise TimeoutError from error
        finally:
            del self._requests[number]
        return totals

    def send_last_counts(self) -> None:
        """Send the parent the last counts."""
        self._channel.settimeout(LAST_SECONDS)
        try:
            # The first line ending is for a line that may have been cut off.
            self._channel.sendall(b"\n" + encode_message(figures=to_json(self.figures())))
        except OSError:
            return  # the parent no longer exists, or does not listen

    async def _handle(self, message: dict[str, Any]) -> None:
        if "tell" in message:
            await self._send(encode_message(figures=to_json(self.figures())))
        elif (answer := self._requests.get(message["all"])) is not None and not answer.done():
            answer.set_result(Totals(from_json(message["figures"]), message["processes"], message["restarts"]))

    async def _send(self, data: bytes) -> None:
        async with self._send_lock:
            await asyncio.get_running_loop().sock_sendall(self._channel, data)


def encode_message(**fields: Any) -> bytes:
    """Return the line for a message over the channel."""
    return json.dumps(fields).encode() + b"\n"

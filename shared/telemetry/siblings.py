"""One of several processes that serve the same port, and its channel to the parent process, which started them.

The channel is a socket over which lines of JSON are sent. A worker reports once that it is ready. It sends its
figures when the parent requests them, and at its end. It requests the figures of all workers from the parent. When
the channel closes, the parent no longer exists, and the worker has to end too.
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
"""Seconds that the parent has to send the figures of all workers, which is longer than it waits for each worker."""
LAST_SECONDS = 1.0
"""Seconds that a worker waits at its end until its last figures are sent."""
_CHUNK_BYTES = 65_536


class Totals(NamedTuple):
    """The figures of all processes that serve the port."""

    figures: Sequence[Figures]
    """The merged figures of all processes, with the counts of those that have ended."""
    processes: Mapping[str, int]
    """The process ids, by the number of the worker; that of the parent has the key "parent"."""
    restarts: int
    """How many workers have ended unexpectedly and were restarted."""


class Siblings:
    """A worker's connection to the parent, by which it gets the figures of the other workers."""

    def __init__(self, number: int, channel: socket.socket) -> None:
        """`channel` is the worker's end of the channel."""
        self.number = number
        """The number of this worker, from 1."""
        self.drain_seconds = 0.0
        """Seconds that this worker waits at its end for work in progress."""
        self.figures: Callable[[], Sequence[Figures]] = tuple
        """Returns the figures of this worker."""
        self._channel = channel
        self._channel.setblocking(False)
        self._send_lock = anyio.Lock()
        self._requests: dict[int, asyncio.Future[Totals]] = {}
        self._numbers = count()

    def report_ready(self, text: str) -> None:
        """Report to the parent that this worker accepts requests. `text` is the message about that for the user."""
        # The buffer of the socket is empty, so a short line never blocks.
        self._channel.send(encode_message(ready=text, drain=self.drain_seconds))

    async def serve_parent(self, stop: Callable[[], None]) -> None:
        """Handle messages of the parent until it no longer exists; then call `stop`."""
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
        """Return the figures of all processes. Raises TimeoutError if the parent does not send them in time."""
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
        """Send the parent the last figures of this worker."""
        self._channel.settimeout(LAST_SECONDS)
        try:
            # Begin with a line ending, in case an earlier line was sent only in part.
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

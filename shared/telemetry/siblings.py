"""One of several processes that serve the same port, and its line to the process that started them, their parent.

The line is a socket, and on it are lines of JSON. A worker says once that it serves, tells what it has counted when
asked and at its end, and asks for what all have counted. Where the line ends the parent is gone, and the worker has
to end, too.
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
"""How long the parent has to say what all have counted: longer than it waits for any of them."""
LAST_SECONDS = 1.0
"""How long the end of a worker waits for its last counts to leave."""
_CHUNK = 65_536


class Whole(NamedTuple):
    """All processes that serve the port."""

    figures: Sequence[Figures]
    """What they have counted together, with those that have ended."""
    processes: Mapping[str, int]
    """Their process ids, by the number of the worker; that of the parent by "parent"."""
    restarts: int
    """How many workers have ended unasked, and were started again."""


class Siblings:
    """What a worker knows of the others."""

    def __init__(self, number: int, channel: socket.socket) -> None:
        """`channel` is its end of the line."""
        self.number = number
        """Which of the workers this one is, from 1."""
        self.drain_seconds = 0.0
        """How long what is under way may take to finish at the end."""
        self.figures: Callable[[], Sequence[Figures]] = tuple
        """What this one has counted."""
        self._channel = channel
        self._channel.setblocking(False)
        self._sending = anyio.Lock()
        self._asked: dict[int, asyncio.Future[Whole]] = {}
        self._numbers = count()

    def began(self, text: str) -> None:
        """Requests are taken from now on; `text` is what the program says then."""
        # The first line, and short: there is room for it.
        self._channel.send(line(ready=text, drain=self.drain_seconds))

    async def attend(self, stop: Callable[[], None]) -> None:
        """Answers the parent until it is gone; then calls `stop`."""
        loop, held = asyncio.get_running_loop(), b""
        try:
            while chunk := await loop.sock_recv(self._channel, _CHUNK):
                *lines, held = (held + chunk).split(b"\n")
                for one in lines:
                    await self._heed(json.loads(one))
        except ConnectionError:
            pass
        stop()

    async def all(self) -> Whole:
        """What all processes have counted. Raises TimeoutError where the parent does not say it."""
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                await self._send(line(ask=number))
                whole: Whole = await answer
        except ConnectionError as error:
            raise TimeoutError from error
        finally:
            del self._asked[number]
        return whole

    def end(self) -> None:
        """Tells the parent the last counts."""
        self._channel.settimeout(LAST_SECONDS)
        try:
            # Behind the end of a line: one may have been cut off.
            self._channel.sendall(b"\n" + line(figures=to_json(self.figures())))
        except OSError:
            return  # it is gone, or does not listen

    async def _heed(self, said: dict[str, Any]) -> None:
        if "tell" in said:
            await self._send(line(figures=to_json(self.figures())))
        elif (answer := self._asked.get(said["all"])) is not None and not answer.done():
            answer.set_result(Whole(from_json(said["figures"]), said["processes"], said["restarts"]))

    async def _send(self, data: bytes) -> None:
        async with self._sending:
            await asyncio.get_running_loop().sock_sendall(self._channel, data)


def line(**said: Any) -> bytes:
    """What one end of the line says to the other."""
    return json.dumps(said).encode() + b"\n"

"""How the port of a replica is closed, so that no client that goes on at another one loses what it has sent.

The system resets the connections that wait to be accepted when the socket is closed. What was sent on them may have
been done, as far as a proxy knows, so that it sends it to nobody else.
"""

import asyncio
import ctypes
import selectors
import socket
import struct
import sys
from contextlib import suppress

import anyio
from anyio.lowlevel import checkpoint

_EMPTY_SECONDS = 0.5
_SO_ATTACH_FILTER = 26


def take_no_more(listener: socket.socket) -> None:
    """Has the system leave unanswered who wants to connect from now on, where it can: Linux. Who waits already can be
    accepted. A client tries again in a second, and is refused then, or goes to another replica; else the system
    might connect it in the moment before the socket is closed."""
    if sys.platform == "linux":
        # A filter of one instruction, "drop it" (Linux, networking/filter: BPF_RET | BPF_K, 0).
        instruction = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
        program = struct.pack("HL", 1, ctypes.addressof(instruction))
        with suppress(OSError):  # it may be forbidden here
            listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


async def all_accepted(server: asyncio.Server) -> None:
    """Waits until no connection waits to be accepted, for a moment at most."""
    with selectors.DefaultSelector() as waiting, anyio.move_on_after(_EMPTY_SECONDS):
        for one in server.sockets:
            waiting.register(one.fileno(), selectors.EVENT_READ)
        while waiting.select(0):
            await checkpoint()

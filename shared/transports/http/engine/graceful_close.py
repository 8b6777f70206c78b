"""Closing the port of a replica without losing requests.

When a socket is closed, the system resets the connections that wait to be accepted. A proxy can't know whether
requests on these connections were carried out, so it does not send them to another replica: they are lost.
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

_MAX_WAIT_SECONDS = 0.5
"""Maximum number of seconds to wait for connections to be accepted; the event loop accepts them in its next turns."""
_SO_ATTACH_FILTER = 26
"""The number of the socket option on Linux, which the module `socket` lacks."""


def stop_accepting(listener: socket.socket) -> None:
    """Make the system ignore new connection attempts, where this is supported (Linux). Waiting connections can still
    be accepted. A client tries again after a second, and is then refused or reaches another replica; otherwise the
    system might accept its connection just before the socket is closed."""
    if sys.platform == "linux":
        # A filter of one instruction, "drop it" (Linux, networking/filter: BPF_RET | BPF_K, 0).
        instruction = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
        program = struct.pack("HL", 1, ctypes.addressof(instruction))
        with suppress(OSError):  # a container may forbid filters
            listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


async def wait_accepted(server: asyncio.Server) -> None:
    """Wait briefly until no connection waits to be accepted."""
    with selectors.DefaultSelector() as selector, anyio.move_on_after(_MAX_WAIT_SECONDS):
        for listener in server.sockets:
            selector.register(listener.fileno(), selectors.EVENT_READ)
        while selector.select(0):
            await checkpoint()

"""Signals that wake the event loop, whenever they arrive."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread

_BYTES = 4096


@contextmanager
def wake_on_signals() -> Iterator[None]:
    """Wake the event loop with every signal that arrives in the block."""
    if os.name == "nt" or current_thread() is not main_thread():  # Python handles signals in the main thread only
        yield
        return
    # Python runs a handler between two bytecodes. A signal that arrives after the last of them, just before the loop
    # calls `select`, would not be handled until the next event, which may never come. So each signal writes a byte
    # that the loop waits for (`signal.set_wakeup_fd`). On Windows the loop does this itself.
    loop = asyncio.get_running_loop()
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        loop.add_reader(reader, reader.recv, _BYTES)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(reader)

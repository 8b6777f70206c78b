"""Signals wake the event loop, whenever they come."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread

_BYTES = 4096


@contextmanager
def woken_by_signals() -> Iterator[None]:
    """Has every signal of the block wake the event loop.

    Python calls a handler between two steps of its own. A signal that comes behind the last of them, just before the
    loop begins to wait, would be handled with the next event, and where nothing else happens, never. So each signal
    writes a byte that the loop waits for. On Windows the loop sees to that itself.
    """
    if os.name == "nt" or current_thread() is not main_thread():  # in other threads no signal is handled
        yield
        return
    loop = asyncio.get_running_loop()
    heard, told = socket.socketpair()
    with heard, told:
        heard.setblocking(False)
        told.setblocking(False)
        loop.add_reader(heard, heard.recv, _BYTES)
        before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(heard)

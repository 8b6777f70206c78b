"""Makes signals wake the event loop, at whatever moment they arrive."""

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
    """During the block, each signal wakes the event loop, so that its handler runs at once."""
    if os.name == "nt" or current_thread() is not main_thread():  # Python handles signals in the main thread only
        yield
        return
    # Python runs the handler of a signal between two bytecodes. If a signal arrives after the last bytecode before
    # the loop calls `select`, its handler does not run until the next event, which may never come. So each signal
    # writes a byte to a socket on which the loop waits (`signal.set_wakeup_fd`). On Windows, the loop does this
    # itself.
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

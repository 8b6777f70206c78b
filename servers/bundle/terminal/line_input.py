"""Reads lines from the terminal without blocking the event loop."""

import asyncio
import os
import sys
from contextlib import suppress
from threading import Thread

_LINE_BYTES = 65_536


def has_terminal() -> bool:
    """Return True if the program can ask the user in a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def write_line(text: str) -> None:
    """Write a line to stderr, which is the terminal even if stdout is not."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


async def ask(prompt: str) -> str | None:
    """Print `prompt`, and return the line that the user types, without surrounding white space; None for Ctrl+D."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bytes] = loop.create_future()

    def settle(line: bytes) -> None:
        if not answer.done():
            answer.set_result(line)

    def read() -> None:
        try:
            # Not with `sys.stdin`, because the waiting thread would hold its lock, which Python needs at exit.
            line = os.read(0, _LINE_BYTES)
        except OSError:  # the terminal was closed
            line = b""
        with suppress(RuntimeError):  # the event loop has been closed meanwhile
            loop.call_soon_threadsafe(settle, line)

    # A daemon thread, so that the program can exit while the thread waits.
    Thread(target=read, daemon=True).start()
    line = await answer
    if not line:
        write_line("")
        return None
    return line.decode("utf-8", "replace").strip()

"""Reads lines from the terminal without blocking the event loop."""

import asyncio
import os
import sys
from contextlib import suppress
from threading import Thread

_LINE_BYTES = 65_536


def has_terminal() -> bool:
    """Return True if there is a terminal for questions."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def write_line(text: str) -> None:
    """Write a line to the terminal, separate from the output."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


async def ask(prompt: str) -> str | None:
    """Return the line that the user types, without surrounding whitespace; None for Ctrl+D."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bytes] = loop.create_future()

    def settle(line: bytes) -> None:
        if not answer.done():
            answer.set_result(line)

    def read() -> None:
        try:
            # Not with `sys.stdin`, whose lock the waiting thread would hold at exit.
            line = os.read(0, _LINE_BYTES)
        except OSError:  # the terminal no longer exists
            line = b""
        with suppress(RuntimeError):  # the session has ended in the meantime
            loop.call_soon_threadsafe(settle, line)

    # A daemon thread, so that the program can exit while it waits.
    Thread(target=read, daemon=True).start()
    line = await answer
    if not line:
        write_line("")
        return None
    return line.decode("utf-8", "replace").strip()

"""The terminal in front of which the user sits: lines are asked for there, while the session goes on."""

import asyncio
import os
import sys
from contextlib import suppress
from threading import Thread

_LINE_BYTES = 65_536


def has_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def tell(text: str) -> None:
    """Writes a line to the terminal, apart from the output."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


async def ask(prompt: str) -> str | None:
    """The line that the user types, without blanks around it; None for Ctrl+D.

    A thread waits for it which nobody waits for: a program that is to end must not need a line for that.
    """
    sys.stderr.write(prompt)
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bytes] = loop.create_future()

    def settle(line: bytes) -> None:
        if not answer.done():
            answer.set_result(line)

    def read() -> None:
        try:
            # Not by `sys.stdin`, whose lock a waiting thread would hold while the program ends.
            line = os.read(0, _LINE_BYTES)
        except OSError:  # the terminal is gone
            line = b""
        with suppress(RuntimeError):  # the session has ended meanwhile
            loop.call_soon_threadsafe(settle, line)

    Thread(target=read, daemon=True).start()
    line = await answer
    if not line:
        tell("")
        return None
    return line.decode("utf-8", "replace").strip()

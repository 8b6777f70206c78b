"""The event loop of a program, which `sys.exit()` in a task does not end.

asyncio lets a SystemExit from any task end the loop, even from a task that a tool has started: the calls of all
clients would end with it. Here only the task fails, and its waiters get the exception.
"""

import asyncio
import logging
from collections.abc import Callable
from importlib.util import find_spec

log = logging.getLogger("shared.program")


def new_event_loop(has_ended: Callable[[], bool], *, prefer_uvloop: bool) -> asyncio.AbstractEventLoop:
    """Return a new loop; with `prefer_uvloop`, a uvloop loop if uvloop is installed. Once `has_ended` returns True,
    SystemExit ends it."""
    if prefer_uvloop and find_spec("uvloop") is not None:
        import uvloop

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    else:
        loop = asyncio.new_event_loop()
    run_forever = loop.run_forever

    def run_on() -> None:
        while True:
            try:
                run_forever()
            except SystemExit:
                if has_ended():
                    raise
                log.warning("sys.exit() was called in a task, which ends the task, but not the server")
            else:
                return

    loop.run_forever = run_on  # type: ignore[method-assign]
    return loop

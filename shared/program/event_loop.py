"""The event loop of a program, which `sys.exit()` in a task does not end.

asyncio lets a SystemExit of any task leave the loop, also of one that a tool has started: the calls of all clients
would end with it. The task itself has failed by then, and what waits for it gets the exception.
"""

import asyncio
import logging
from collections.abc import Callable
from importlib.util import find_spec

log = logging.getLogger("shared.program")


def new_event_loop(is_over: Callable[[], bool], *, fast: bool) -> asyncio.AbstractEventLoop:
    """Return a new loop, with `fast` one of uvloop if it is installed. Once `is_over` returns True, SystemExit ends
    it."""
    if fast and find_spec("uvloop") is not None:
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
                if is_over():
                    raise
                log.warning("sys.exit() was called in a task, which ends the task and not the server")
            else:
                return

    loop.run_forever = run_on  # type: ignore[method-assign]
    return loop

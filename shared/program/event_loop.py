"""An event loop that does not end if a task calls `sys.exit()`.

In asyncio, a SystemExit from any task ends the loop, even from a task that a tool has started, and with it the calls
of all clients. Here only that task fails, and tasks that wait for it get the exception.
"""

import asyncio
import logging
from collections.abc import Callable
from importlib.util import find_spec

log = logging.getLogger("shared.program")


def new_event_loop(has_ended: Callable[[], bool], *, prefer_uvloop: bool) -> asyncio.AbstractEventLoop:
    """Return a new event loop, with `prefer_uvloop` one of uvloop if that is installed. SystemExit ends the loop only
    once `has_ended` returns True."""
    if prefer_uvloop and find_spec("uvloop") is not None:
        import uvloop

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    else:
        loop = asyncio.new_event_loop()
    run_forever = loop.run_forever

    def run_despite_exits() -> None:
        while True:
            try:
                run_forever()
            except SystemExit:
                if has_ended():
                    raise
                log.warning("sys.exit() was called in a task, which ends the task, but not the server")
            else:
                return

    loop.run_forever = run_despite_exits  # type: ignore[method-assign]
    return loop

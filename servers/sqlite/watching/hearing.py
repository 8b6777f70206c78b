"""Hearing of what happens in some directories, as a task: a notice is only a reason to look.

Where there are no notices, because watchfiles is missing or the system refuses, whoever wants to know looks every now
and then anyway.
"""

import threading
from collections.abc import Callable, Collection

from anyio import CapacityLimiter, to_thread

from shared.kit.notices import Notices, until_stopped

__all__ = ["Noticed", "hear"]

Noticed = Callable[[Collection[str] | None], None]
"""Takes the paths that something happened to; None when it may have happened to any."""

_AGAIN_SECONDS = 5.0
"""How often it is asked whether the directories are still the same ones, and whether there is a watch."""


async def hear(notices: Notices, directories: Collection[str], noticed: Noticed) -> None:
    """Calls back until it is cancelled, for the first time when the watch has begun; then closes `notices`."""
    limiter = CapacityLimiter(1)
    try:
        while True:
            if await to_thread.run_sync(notices.arm, directories, limiter=limiter):
                noticed(None)
            stop = threading.Event()
            waiting = to_thread.run_sync(notices.wait, stop, _AGAIN_SECONDS, limiter=limiter)
            paths = await until_stopped(stop, waiting)
            if paths is None or paths:
                noticed(paths)
    finally:
        notices.close()

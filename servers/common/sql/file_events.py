"""Notices of what happens in directories."""

from collections.abc import Callable, Collection

from anyio import CapacityLimiter, to_thread

from servers.common.notices import Notices, wait_in_thread

Noticed = Callable[[Collection[str] | None], None]
"""Takes the paths that something happened to; None when it may have happened to any."""
_AGAIN_SECONDS = 5.0
"""How often it is asked whether the directories are still the same ones, and whether there is a watch."""


def ignore(_: object) -> None:
    """Nobody wants to know."""


async def watch_events(
    notices: Notices,
    directories: Collection[str],
    noticed: Noticed,
    armed: Callable[[Notices], None] = ignore,
) -> None:
    """Calls back until it is cancelled, for the first time when the watch has begun; then closes `notices`, which
    `armed` is given whenever a watch was asked for."""
    limiter = CapacityLimiter(1)
    try:
        while True:
            is_new = await to_thread.run_sync(notices.arm, directories, limiter=limiter)
            armed(notices)
            if is_new:
                noticed(None)
            paths = await wait_in_thread(notices.wait, _AGAIN_SECONDS, limiter)
            if paths is None or paths:
                noticed(paths)
    finally:
        notices.close()

"""The one watch that this process asks of the operating system, for some directories and not what is below them.

A notice is only a reason to look. Where there are none, because watchfiles is missing or the system refuses, or a
watch fails, whoever wants to know looks every now and then anyway; another watch is tried after a while.
watchfiles is imported here, on the first use, and nowhere else.
"""

import logging
import threading
from collections.abc import Callable, Collection
from typing import Any

import anyio
from anyio import CapacityLimiter, to_thread

__all__ = ["Noticed", "Notices"]

log = logging.getLogger("servers.sqlite")

Noticed = Callable[[Collection[str] | None], None]
"""Takes the paths that something happened to; None when it may have happened to any."""

_STEP_MS = 20
_AGAIN_SECONDS = 30.0


class Notices:
    """Notices of what happens in some directories."""

    def __init__(self, directories: Collection[str]) -> None:
        self._directories = sorted(directories)
        self._limiter = CapacityLimiter(1)
        self.degraded = False
        """Whether there are none, so that changes must be looked for."""

    async def run(self, noticed: Noticed) -> None:
        """Calls back until it is cancelled, for the first time when the watch has begun."""
        while True:
            watch = await to_thread.run_sync(self._opened)
            if watch is not None:
                await self._hear(watch, noticed)
            await anyio.sleep(_AGAIN_SECONDS)

    async def _hear(self, watch: Any, noticed: Noticed) -> None:
        try:
            paths = None
            while True:
                noticed(paths)
                paths = await self._next(watch)
                if paths is None:
                    return
        finally:
            watch.close()

    def _opened(self) -> Any:
        try:
            from watchfiles._rust_notify import RustNotify  # noqa: PLC0415 (nothing is watched before)

            # Told to ignore what it may not read, it ignores the limit on watches as well.
            watch = RustNotify(self._directories, False, False, 0, False, False)
        except (ImportError, OSError, RuntimeError) as error:
            if not self.degraded:
                log.warning("no notices of changes (%s): looking for them instead", error)
            self.degraded = True
            return None
        self.degraded = False
        return watch

    async def _next(self, watch: Any) -> set[str] | None:
        """The paths of the next notices, None where there will be no more."""
        stop, found = threading.Event(), None
        async with anyio.create_task_group() as tasks:
            # The thread can't be cancelled, so a task that can be tells it to stop.
            tasks.start_soon(_stop_when_cancelled, stop)
            found = await to_thread.run_sync(_found, watch, stop, limiter=self._limiter)
            tasks.cancel_scope.cancel()
        return found


def _found(watch: Any, stop: threading.Event) -> set[str] | None:
    try:
        found = watch.watch(_STEP_MS, _STEP_MS, 0, stop)
    except RuntimeError:
        return None  # one name that is no UTF-8 is enough for that
    return set() if isinstance(found, str) else {path for _, path in found}


async def _stop_when_cancelled(stop: threading.Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()

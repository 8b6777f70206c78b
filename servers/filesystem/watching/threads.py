"""The threads in which the watcher looks and waits.

They are counted apart from those of the calls, so that watching takes none from who reads files; and apart from each
other, so that a file system that does not answer holds up only what is watched on it.
"""

import threading
from collections.abc import Callable
from typing import Any

import anyio
from anyio import to_thread

from shared.kit.notices import until_stopped

_EACH = 4


class Threads:
    """Where blocking functions run: `far` ones may take for ever."""

    def __init__(self) -> None:
        self._near, self._far = anyio.CapacityLimiter(_EACH), anyio.CapacityLimiter(_EACH)

    async def run(self, function: Callable[..., Any], *arguments: Any, far: bool = False) -> Any:
        """The result of `function`."""
        return await to_thread.run_sync(function, *arguments, limiter=self._far if far else self._near)

    async def wait(self, function: Callable[..., Any], stop: threading.Event, seconds: float) -> Any:
        """The result of `function`, which ends when `stop` is set, and so when this is cancelled."""
        return await until_stopped(stop, self.run(function, stop, seconds))

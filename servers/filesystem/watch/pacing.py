"""Checks of watched targets: their pace, and the threads they run in.

Theory of the pace. The first notice after a quiet time is acted upon at once. Those that follow it closely are
collected until no more come for a moment, but at most for so long that a target that changes all the time is still
reported, at a bounded rate and with its last change. Each target has a pace of its own, so a busy one delays no
other.

The threads in which the watcher looks and waits are limited apart from those of the calls, so that watching takes
none from reads of files; and apart from each other, so that a file system that does not answer delays only the
targets on it.
"""

import threading
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import anyio
from anyio import to_thread

from servers.common.notices import wait_in_thread
from shared.program.files.entries import Place

MAX_NOTICED = 2_000
"""Paths remembered for one look; with more of them the look is at everything."""
_THREADS = 4
"""Threads for looks at local files, and as many for those at remote ones."""


class Pace(NamedTuple):
    """The delay of a look after a notice, in seconds: `quiet` without another, and `longest` after the first one.

    With `leading`, the first notice after a time of `longest` without looks is acted upon at once.
    """

    quiet: float = 0.025
    longest: float = 0.25
    leading: bool = True


class Target(Protocol):
    """The target of a watch. `look` blocks and raises nothing; it takes the noticed paths, or None for any."""

    @property
    def place(self) -> Place:
        """Its place beneath the operator's roots."""

    @property
    def trail(self) -> Collection[str]:
        """The paths whose changes concern it."""

    @property
    def directories(self) -> Collection[str]:
        """The directories whose entries all concern it."""

    def look(self, noticed: Collection[str] | None) -> bool:
        """Return True if there is a change since the look before; never at the first one."""

    def close(self) -> None:
        """Release its resources."""


@dataclass(slots=True)
class Watched:
    """A target with its callback, and the notices since the last look at it."""

    target: Target
    tell: Callable[[], Awaitable[None]]
    pace: Pace
    remote: bool = False
    """True if notices do not reach it, so that it must be looked at every second."""
    busy: bool = False
    """True while a look at it is under way."""
    due: float | None = None
    """The time of the next look, by `time.monotonic`."""
    noticed: set[str] | None = None
    """The paths to look at, None for all."""
    _first: float = 0.0
    _looked: float = 0.0

    def notice(self, now: float, path: str | None = None) -> None:
        """Record a notice about the entry `path` of one of its directories, or else about all of it."""
        if self.due is None:
            self._first = now
            self.noticed = set()
        if path is None or self.noticed is None or len(self.noticed) >= MAX_NOTICED:
            self.noticed = None
        else:
            self.noticed.add(path)
        if self.pace.leading and now - self._looked >= self.pace.longest:
            self.due = now
        else:
            self.due = min(now + self.pace.quiet, self._first + self.pace.longest)

    def demand(self, now: float) -> None:
        """Schedule a look at all of it for now."""
        self.due, self.noticed = now, None

    def take(self, now: float) -> set[str] | None:
        """Return the paths to look at, and record that the look begins."""
        self.due, self._looked = None, now
        noticed, self.noticed = self.noticed, None
        return noticed


def look_at(target: Target, noticed: set[str] | None) -> tuple[bool, bool]:
    """Return True if there is a change, and True if other paths have to be watched now."""
    before = target.trail, target.directories
    changed = target.look(noticed)
    return changed, before != (target.trail, target.directories)


class Threads:
    """The threads for blocking functions; `remote` ones may never return."""

    def __init__(self) -> None:
        self._local, self._remote = anyio.CapacityLimiter(_THREADS), anyio.CapacityLimiter(_THREADS)

    async def run(self, function: Callable[..., Any], *arguments: Any, remote: bool = False) -> Any:
        """Return the result of `function`."""
        return await to_thread.run_sync(function, *arguments, limiter=self._remote if remote else self._local)

    async def wait(self, function: Callable[..., Any], stop: threading.Event, seconds: float) -> Any:
        """Return the result of `function`, which ends when `stop` is set, and so when this is cancelled."""
        return await wait_in_thread(function, seconds, self._local, stop)

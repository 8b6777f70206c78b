"""Looks at what is watched: when the next one is due, and in which thread it is taken.

Theory of the pace. The first notice after a quiet time is acted upon at once. What follows it closely is gathered:
until nothing more came for a moment, and at most for so long that a thing that changes all the time is still told of,
at a bounded rate and its last change included. Each thing has a pace of its own, so a busy one delays no other.

The threads in which the watcher looks and waits are counted apart from those of the calls, so that watching takes
none from who reads files; and apart from each other, so that a file system that does not answer holds up only what is
watched on it.
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
"""Paths remembered for one look; after more of them the look is at everything."""
_THREADS = 4
"""For looks at what is on this machine, and as many for what is on others."""


class Pace(NamedTuple):
    """How soon a look follows a notice, in seconds: `quiet` without another, and `longest` after the first one.

    `leading` has the first notice after a time of `longest` without looks acted upon at once.
    """

    quiet: float = 0.025
    longest: float = 0.25
    leading: bool = True


class Target(Protocol):
    """What is looked at. `look` blocks and raises nothing; it takes the paths notices named, or None for any."""

    @property
    def place(self) -> Place:
        """Where it is, beneath the operator's roots."""

    @property
    def trail(self) -> Collection[str]:
        """The paths a change of which concerns it."""

    @property
    def directories(self) -> Collection[str]:
        """The directories every name in which concerns it."""

    def look(self, noticed: Collection[str] | None) -> bool:
        """Whether there is a change since the look before; never at the first one."""

    def close(self) -> None:
        """Give back what it holds."""


@dataclass(slots=True)
class Watched:
    """A target with whom to tell, and the notices since the last look at it."""

    target: Target
    tell: Callable[[], Awaitable[None]]
    pace: Pace
    remote: bool = False
    """Whether notices do not reach it, so that it must be looked at every second."""
    busy: bool = False
    """Whether it is being looked at."""
    due: float | None = None
    """When to look, in the time of `time.monotonic`."""
    noticed: set[str] | None = None
    """The paths to look at, None for all."""
    _first: float = 0.0
    _looked: float = 0.0

    def notice(self, now: float, path: str | None = None) -> None:
        """Take note that something happened, to the entry `path` of one of its directories or else to all of it."""
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
        """Have it looked at now, and wholly."""
        self.due, self.noticed = now, None

    def take(self, now: float) -> set[str] | None:
        """What to look at, now that it is looked at."""
        self.due, self._looked = None, now
        noticed, self.noticed = self.noticed, None
        return noticed


def look_at(target: Target, noticed: set[str] | None) -> tuple[bool, bool]:
    """Whether there is a change, and whether something else has to be watched now."""
    before = target.trail, target.directories
    changed = target.look(noticed)
    return changed, before != (target.trail, target.directories)


class Threads:
    """Where blocking functions run: `remote` ones may take for ever."""

    def __init__(self) -> None:
        self._local, self._remote = anyio.CapacityLimiter(_THREADS), anyio.CapacityLimiter(_THREADS)

    async def run(self, function: Callable[..., Any], *arguments: Any, remote: bool = False) -> Any:
        """The result of `function`."""
        return await to_thread.run_sync(function, *arguments, limiter=self._remote if remote else self._local)

    async def wait(self, function: Callable[..., Any], stop: threading.Event, seconds: float) -> Any:
        """The result of `function`, which ends when `stop` is set, and so when this is cancelled."""
        return await wait_in_thread(function, seconds, self._local, stop)

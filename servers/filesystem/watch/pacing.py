"""The pace at which watched targets are checked, and the threads that check them.

A notice is the operating system's report of a change of a name in a watched directory. The first notice after a quiet
time is acted upon at once. Notices that follow it closely are collected until no more come for a moment, but only for
a limited time, so that a target that changes constantly is still reported, at a bounded rate and with its last
change. Each target has its own pace, so a busy target does not delay the others.

The watcher's threads have their own limits, so that watching takes no threads from calls. Threads for remote file
systems are limited separately, so that one that does not respond delays only its own targets.
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
"""Maximum number of paths remembered for one check. If there are more, everything is checked."""
_MAX_THREADS = 4
"""Maximum number of threads that check local targets; as many may check remote targets."""


class Pace(NamedTuple):
    """The delay of a check, in seconds: `quiet` after the last notice, but at most `longest` after the first.

    With `leading`, the first notice is acted upon at once if there was no check for `longest` seconds.
    """

    quiet: float = 0.025
    longest: float = 0.25
    leading: bool = True


class Target(Protocol):
    """The target of a watch. Its `check` blocks and never raises. It gets the paths from notices; None to check
    everything."""

    @property
    def place(self) -> Place:
        """The place of the target below the operator's roots."""

    @property
    def trail(self) -> Collection[str]:
        """The paths whose changes affect the target."""

    @property
    def directories(self) -> Collection[str]:
        """The directories all of whose entries affect the target."""

    def check(self, noticed: Collection[str] | None) -> bool:
        """Return True if something has changed since the last check; always False the first time."""

    def close(self) -> None:
        """Release its resources."""


@dataclass(slots=True, eq=False, repr=False)
class WatchedTarget:
    """A target with its callback, and the notices since its last check."""

    target: Target
    callback: Callable[[], Awaitable[None]]
    pace: Pace
    is_remote: bool = False
    """True if the system sends no notices for the target, so that it must be checked every second."""
    is_being_checked: bool = False
    """True while it is being checked."""
    due_at: float | None = None
    """The time of the next check, as `time.monotonic`."""
    noticed: set[str] | None = None
    """The paths to check; None for all."""
    _first_notice_at: float = 0.0
    _checked_at: float = 0.0

    def notice(self, now: float, path: str | None = None) -> None:
        """Record a notice about `path`, an entry in one of the target's directories; None to check everything."""
        if self.due_at is None:
            self._first_notice_at = now
            self.noticed = set()
        if path is None or self.noticed is None or len(self.noticed) >= MAX_NOTICED:
            self.noticed = None
        else:
            self.noticed.add(path)
        if self.pace.leading and now - self._checked_at >= self.pace.longest:
            self.due_at = now
        else:
            self.due_at = min(now + self.pace.quiet, self._first_notice_at + self.pace.longest)

    def schedule(self, time: float) -> None:
        """Schedule a check of everything for this time."""
        self.due_at, self.noticed = time, None

    def begin_check(self, now: float) -> set[str] | None:
        """Return the paths to check, and record that the check begins."""
        self.due_at, self._checked_at = None, now
        noticed, self.noticed = self.noticed, None
        return noticed


def check_target(target: Target, noticed: set[str] | None) -> tuple[bool, bool]:
    """Check the target. Return True if it has changed, and True if other paths have to be watched now."""
    before = target.trail, target.directories
    changed = target.check(noticed)
    return changed, before != (target.trail, target.directories)


class Threads:
    """The threads for blocking functions. Functions on `remote` targets may never return."""

    def __init__(self) -> None:
        self._local, self._remote = anyio.CapacityLimiter(_MAX_THREADS), anyio.CapacityLimiter(_MAX_THREADS)

    async def run(self, function: Callable[..., Any], *arguments: Any, remote: bool = False) -> Any:
        """Return the result of `function`."""
        return await to_thread.run_sync(function, *arguments, limiter=self._remote if remote else self._local)

    async def wait(self, function: Callable[..., Any], stop: threading.Event, seconds: float) -> Any:
        """Return the result of `function`, which ends when `stop` is set. Cancellation sets it."""
        return await wait_in_thread(function, seconds, self._local, stop)

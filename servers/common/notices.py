"""The one watch that a server asks of the operating system.

It watches directories, each on its own and not what is below them, and is replaced as a whole when the set changes:
the new watch is open before the old one is closed. Directories count as the same only with the same inode, because a
watch does not survive its directory, and only while no notice says that they went or came: an inode that is free is
given to the next directory at once. A notice is but a reason to look. watchfiles is imported here, on the first use,
and nowhere else.

Where watchfiles is missing or the system refuses (its limit on watches for one) there is no watch: `degraded` says
so, and another is tried after a while. A watch that errs, for which one name that is no UTF-8 is enough, gives no
more notices at all, so it is replaced.

What follows a notice each watch does in its own way, so there is no loop here for all of them. Of files each thing
has a pace of its own, and a thread as its file system is near or remote; of libraries one look is the reason for the
next watch, and its length for how seldom it is taken; a database is told of at once and then rests, and what it wrote
itself takes another way. What would be left in common is a call with a switch for each of these.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

T = TypeVar("T")

FLOOD = 2_000
"""Notices at once from which on it is cheaper to look at everything."""

_IDLE_STEP_MS = 20
_BRISK_STEP_MS = 5
_BRISK_SECONDS = 2.0
_REFUSED_SECONDS = 30.0
_ERRED_SECONDS = 1.0

_MODIFIED = 2
"""What watchfiles calls a change of something that was there before and is there now."""
_DEAD = -1, -1
"""The device and inode of a directory that is none, or another one than the one that is watched."""

log = logging.getLogger("servers.common.notices")


def open_watch(directories: list[str]) -> Any:
    """A watch of watchfiles on these directories. Raises ImportError, OSError, RuntimeError."""
    from watchfiles._rust_notify import RustNotify

    # Told to ignore what it may not read, it ignores the limit on watches as well.
    return RustNotify(directories, False, False, 0, False, False)


class Notices:
    """Notices of what happens in a changing set of directories. Blocking, and for one thread at a time; `close` it
    when done."""

    def __init__(self, opener: Callable[[list[str]], Any] = open_watch) -> None:
        self._opener = opener
        self._armed: dict[str, tuple[int, int]] = {}
        self._watch: Any = None
        self._opened = self._again = self._last = 0.0
        self._refusal: str | None = None
        self.degraded = False
        """Whether the system gives no notices, so that changes must be looked for."""

    def arm(self, directories: Iterable[str]) -> bool:
        """Watches these directories; whether that took a new watch, so that everything needs another look."""
        wanted: dict[str, tuple[int, int]] = {}
        for path in directories:
            try:
                path.encode()
                status = os.stat(path)  # noqa: PTH116 - a path for each of thousands of directories would take long
            except (OSError, UnicodeEncodeError):
                # Gone, or a name watchfiles cannot take: the sweep finds what changes there.
                continue
            if os.access(path, os.R_OK):
                wanted[path] = status.st_dev, status.st_ino
        if not wanted:
            self.close()
            return False
        same = wanted == self._armed
        if same and (self._watch is not None or time.monotonic() < self._again):
            return False
        fresh = self._open(sorted(wanted))
        if fresh is None and self._watch is not None:
            # Alone it may keep to the limit.
            self.close()
            fresh = self._open(sorted(wanted))
        self.close()
        self._watch, self._armed, self._opened = fresh, wanted, time.monotonic()
        if self._refusal is not None and not self.degraded:
            log.warning("no notices of changes (%s): looking for them instead", self._refusal)
        if fresh is not None and self.degraded:
            log.info("notices of changes again")
        self.degraded = self._refusal is not None
        return fresh is not None or not same

    @property
    def deaf(self) -> bool:
        """Whether there is no watch now, for whatever reason."""
        return self._watch is None

    def watches(self, path: str) -> bool:
        """Whether `path` is one of the directories."""
        return path in self._armed

    def wait(self, stop: threading.Event, seconds: float) -> set[str] | None:
        """The paths that something happened to, none after `seconds`; None when it may have happened to any. Setting
        `stop` ends it, with one of both."""
        if self._watch is None:
            stop.wait(seconds)
            return set()
        step = _BRISK_STEP_MS if time.monotonic() - self._last < _BRISK_SECONDS else _IDLE_STEP_MS
        try:
            found = self._watch.watch(step, step, max(1, int(seconds * 1_000)), stop)
        except RuntimeError:
            armed, now = self._armed, time.monotonic()
            self.close()
            # One that errs at once is not made again at once: a busy file with a bad name would keep us at it.
            if now - self._opened < _ERRED_SECONDS:
                self._armed, self._again = armed, now + _ERRED_SECONDS
            return None
        if isinstance(found, str):
            # Told to stop, watchfiles forgets the notices it holds.
            return set() if found == "timeout" else None
        self._last = time.monotonic()
        for change, path in found:
            if change != _MODIFIED and path in self._armed:
                self._armed[path] = _DEAD
        return None if len(found) >= FLOOD else {path for _, path in found}

    def close(self) -> None:
        """Ends the watch, its thread and its descriptor."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._armed = {}

    def _open(self, directories: list[str]) -> Any:
        self._refusal = None
        try:
            return self._opener(directories)
        except (FileNotFoundError, PermissionError):
            # Gone or forbidden since we looked, and no refusal.
            self._again = time.monotonic() + _ERRED_SECONDS
        except (ImportError, OSError, RuntimeError) as error:
            self._again = time.monotonic() + _REFUSED_SECONDS
            self._refusal = str(error)
        return None


async def wait_in_thread(
    wait: Callable[[threading.Event, float], T],
    seconds: float,
    limiter: CapacityLimiter,
    stop: threading.Event | None = None,
) -> T:
    """What `wait` gives in a thread of the `limiter`, after `seconds` at most. It ends when `stop` is set, as it is
    when this is cancelled."""
    stop = stop or threading.Event()
    async with anyio.create_task_group() as tasks:
        # The thread can't be cancelled, so a task that can be tells it to stop.
        tasks.start_soon(_stop_when_cancelled, stop)
        found = await to_thread.run_sync(wait, stop, seconds, limiter=limiter)
        tasks.cancel_scope.cancel()
    return found


async def _stop_when_cancelled(stop: threading.Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()

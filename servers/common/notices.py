"""A watch on files, requested from the operating system.

It watches directories, each without its subdirectories, and is replaced as a whole when the set changes: the new
watch is open before the old one is closed. Directories count as the same only with the same inode, because a watch
does not survive its directory, and only while no notice reports their removal or creation: a free inode is given to
the next directory at once. A notice is only a reason to look. watchfiles is imported here, on the first use, and
nowhere else.

If watchfiles is missing or the system refuses (its limit on watches for example) there is no watch: `degraded` is
True, and another is tried after a while. A watch that fails, for which one name that is not UTF-8 is enough, gives no
more notices at all, so it is replaced.

Each watch handles its notices in its own way, so there is no common loop here. Files are each looked at at their own
pace, in a thread that depends on whether their file system is local or remote; a look at a library is the reason for
the next watch, and its duration determines how seldom one is taken; a database is reported at once and then rests,
and its own writes take another way. A common loop would be a call with a switch for each of these.
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
"""The number with which watchfiles reports a change of an entry that existed before and exists now."""
_DEAD = -1, -1
"""In place of the device and inode of a directory that is gone, or not the one that is watched."""

log = logging.getLogger("servers.common.notices")


def open_watch(directories: list[str]) -> Any:
    """Open a watch of watchfiles on these directories. Raises ImportError, OSError, RuntimeError."""
    from watchfiles._rust_notify import RustNotify

    # If it were to ignore unreadable directories, it would ignore the limit on watches as well.
    return RustNotify(directories, False, False, 0, False, False)


class Notices:
    """Notices of changes in a set of directories that may change as well.

    Blocking, and for one thread at a time; `close` it when done.
    """

    def __init__(self, opener: Callable[[list[str]], Any] = open_watch) -> None:
        self._opener = opener
        self._armed: dict[str, tuple[int, int]] = {}
        self._watch: Any = None
        self._opened = self._again = self._last = 0.0
        self._refusal: str | None = None
        self.degraded = False
        """True if the system gives no notices, so that changes must be polled."""

    def arm(self, directories: Iterable[str]) -> bool:
        """Watch these directories; return True if that took a new watch, so that everything needs another look."""
        requested: dict[str, tuple[int, int]] = {}
        for path in directories:
            try:
                path.encode()
                status = os.stat(path)  # noqa: PTH116 - a path for each of thousands of directories would take long
            except (OSError, UnicodeEncodeError):
                # Removed, or a name that watchfiles can't take: the sweep notices changes there.
                continue
            if os.access(path, os.R_OK):
                requested[path] = status.st_dev, status.st_ino
        if not requested:
            self.close()
            return False
        same = requested == self._armed
        if same and (self._watch is not None or time.monotonic() < self._again):
            return False
        fresh = self._open(sorted(requested))
        if fresh is None and self._watch is not None:
            # Without the old one it may be within the limit.
            self.close()
            fresh = self._open(sorted(requested))
        self.close()
        self._watch, self._armed, self._opened = fresh, requested, time.monotonic()
        if self._refusal is not None and not self.degraded:
            log.warning("no change notifications (%s): polling instead", self._refusal)
        if fresh is not None and self.degraded:
            log.info("change notifications work again")
        self.degraded = self._refusal is not None
        return fresh is not None or not same

    @property
    def deaf(self) -> bool:
        """True if there is no watch now, for any reason."""
        return self._watch is None

    def watches(self, path: str) -> bool:
        """Return True if `path` is one of the directories."""
        return path in self._armed

    def wait(self, stop: threading.Event, seconds: float) -> set[str] | None:
        """Return the paths that were changed, none after `seconds`; None if any may have been.

        Setting `stop` ends the wait, with either result.
        """
        if self._watch is None:
            stop.wait(seconds)
            return set()
        step = _BRISK_STEP_MS if time.monotonic() - self._last < _BRISK_SECONDS else _IDLE_STEP_MS
        try:
            changes = self._watch.watch(step, step, max(1, int(seconds * 1_000)), stop)
        except RuntimeError:
            armed, now = self._armed, time.monotonic()
            self.close()
            # One that fails at once is not made again at once: a busy file with a bad name would keep us busy.
            if now - self._opened < _ERRED_SECONDS:
                self._armed, self._again = armed, now + _ERRED_SECONDS
            return None
        if isinstance(changes, str):
            # When stopped, watchfiles drops its pending notices.
            return set() if changes == "timeout" else None
        self._last = time.monotonic()
        for change, path in changes:
            if change != _MODIFIED and path in self._armed:
                self._armed[path] = _DEAD
        return None if len(changes) >= FLOOD else {path for _, path in changes}

    def close(self) -> None:
        """Close the watch, its thread and its descriptor."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._armed = {}

    def _open(self, directories: list[str]) -> Any:
        self._refusal = None
        try:
            return self._opener(directories)
        except (FileNotFoundError, PermissionError):
            # Removed or forbidden since the check, which is not a refusal.
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
    """Return the result of `wait` in a thread of the `limiter`, after `seconds` at most.

    It ends when `stop` is set, which also happens on cancellation.
    """
    stop = stop or threading.Event()
    async with anyio.create_task_group() as tasks:
        # The thread can't be cancelled, so a task that can be cancelled stops it.
        tasks.start_soon(_stop_when_cancelled, stop)
        result = await to_thread.run_sync(wait, stop, seconds, limiter=limiter)
        tasks.cancel_scope.cancel()
    return result


async def _stop_when_cancelled(stop: threading.Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()

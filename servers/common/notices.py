"""A file watch provided by the operating system.

It watches directories without their subdirectories, and is replaced as a whole when the set changes: the new watch is
opened before the old one is closed. A directory counts as the same only if it has the same inode, because a watch
does not survive its directory, and only while no notice reports its removal or creation, because inodes are reused at
once. A notice only says that something may have changed. watchfiles is imported only here, at first use.

If watchfiles is missing or the system refuses, for example because of its limit on watches, there is no watch:
`degraded` is True, and a new watch is tried after a while. A watch that fails, for which a single name that is not
UTF-8 is enough, sends no more notices, so it is replaced.

Each user of a watch handles notices in its own way, so there is no common loop here. Files are checked at their own
pace, in a thread chosen by whether their file system is local or remote. A check of a library leads to the next
watch, and its duration determines the pace. Changes of a database are reported at once, followed by a pause, and its
own writes are reported separately. A common loop would need an option for each of these.
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
"""Number of simultaneous notices from which checking everything is cheaper."""

_IDLE_STEP_MS = 20
_BRISK_STEP_MS = 5
_BRISK_SECONDS = 2.0
_REFUSED_SECONDS = 30.0
_ERRED_SECONDS = 1.0

_MODIFIED = 2
"""The number with which watchfiles reports a change of an existing entry."""
_DEAD = -1, -1
"""Replaces the device and inode of a directory that no longer exists, or is not the one being watched."""

log = logging.getLogger("servers.common.notices")


def open_watch(directories: list[str]) -> Any:
    """Open a watchfiles watch on these directories. Raises ImportError, OSError, RuntimeError."""
    from watchfiles._rust_notify import RustNotify

    # If it ignored unreadable directories, it would also ignore the limit on watches.
    return RustNotify(directories, False, False, 0, False, False)


class Notices:
    """Notices of changes in a set of directories, which may itself change.

    Blocking, and for one thread at a time; `close` it when done.
    """

    def __init__(self, opener: Callable[[list[str]], Any] = open_watch) -> None:
        self._opener = opener
        self._armed: dict[str, tuple[int, int]] = {}
        self._watch: Any = None
        self._opened = self._again = self._last = 0.0
        self._refusal: str | None = None
        self.degraded = False
        """True if the system sends no notices, so that changes must be polled."""

    def arm(self, directories: Iterable[str]) -> bool:
        """Watch these directories. Return True if that required a new watch, so that everything must be checked
        again."""
        requested: dict[str, tuple[int, int]] = {}
        for path in directories:
            try:
                path.encode()
                status = os.stat(path)  # noqa: PTH116 - a path for each of thousands of directories would take long
            except (OSError, UnicodeEncodeError):
                # Removed, or with a name that watchfiles can't handle; the regular check of everything detects
                # changes there.
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
            # Without the old watch, the new one may be within the limit.
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
        """True if there is currently no watch, for any reason."""
        return self._watch is None

    def watches(self, path: str) -> bool:
        """Return True if `path` is one of the directories."""
        return path in self._armed

    def wait(self, stop: threading.Event, seconds: float) -> set[str] | None:
        """Return the changed paths, an empty set after `seconds`, or None if any path may have changed.

        Setting `stop` ends the wait, with either of the latter.
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
            # A watch that fails immediately is not recreated immediately: a busy file with a bad name would cause
            # constant work.
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
            # Removed or made inaccessible since the check, which is not a refusal by the system.
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
    """Return the result of `wait`, run in a thread of the `limiter`, after at most `seconds`.

    It ends when `stop` is set, which cancellation also does.
    """
    stop = stop or threading.Event()
    async with anyio.create_task_group() as tasks:
        # The thread itself can't be cancelled, so a cancellable task stops it.
        tasks.start_soon(_stop_when_cancelled, stop)
        result = await to_thread.run_sync(wait, stop, seconds, limiter=limiter)
        tasks.cancel_scope.cancel()
    return result


async def _stop_when_cancelled(stop: threading.Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stop.set()

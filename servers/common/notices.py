"""Receives the operating system's notifications of changes in directories, called notices, with watchfiles. A notice
says only that something may have changed.

A watch covers a set of directories without their subdirectories. When the set changes, a new watch is opened before
the old one is closed. A watch of a directory ends if the directory is removed, even if another one is created at the
same path. So the inodes of directories are compared. Since inodes are reused immediately, a notice that a watched
directory was removed or created also leads to a new watch. Only this module imports watchfiles, at first use.

If watchfiles is missing or the system refuses, for example because of its limit on watches, there is no watch:
`is_polling` is True, and another attempt is made after a while. A watch stops working when it meets a name that is
not UTF-8. It is then replaced.

The servers that use a watch share no loop, because it would need an option for each difference between them.
The filesystem server checks each file at a pace of its own, in a thread chosen by whether its file system is local or
remote. In the prompts server, checking a library determines which directories to watch next, and the duration of the
check determines the pace. The sqlite server reports changes to a database immediately and then pauses; it reports its
own writes separately.
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

CHECK_ALL_THRESHOLD = 2_000
"""Number of simultaneous notices at which checking everything becomes cheaper than checking each path."""

_IDLE_STEP_MS = 20
"""Interval in milliseconds at which watchfiles collects changes."""
_ACTIVE_STEP_MS = 5
"""The same interval during the first `_ACTIVE_SECONDS` after a change."""
_ACTIVE_SECONDS = 2.0
"""Seconds after a change in which changes are collected at the shorter interval."""
_REFUSED_SECONDS = 30.0
"""Seconds until the next attempt after the system has refused a watch."""
_FAILED_SECONDS = 1.0
"""Seconds until the next attempt after a watch has failed or a directory has become unreadable."""

_MODIFIED = 2
"""The number with which watchfiles reports a change to an existing entry."""
_NOT_WATCHED = -1, -1
"""Replaces the device and inode of a watched directory that was removed or recreated, so that it equals no other."""

log = logging.getLogger("servers.common.notices")


def open_watch(directories: list[str]) -> Any:
    """Open a watchfiles watch on these directories. Raises ImportError, OSError, RuntimeError."""
    from watchfiles._rust_notify import RustNotify

    # The last argument would ignore unreadable directories. It is False, because it would also hide that the limit on
    # watches was reached.
    return RustNotify(directories, False, False, 0, False, False)


class Notices:
    """Watches a set of directories, which may change, and returns notices.

    Its methods block, and only one thread may use it at a time. Call `close` when done.
    """

    def __init__(self, open_function: Callable[[list[str]], Any] = open_watch) -> None:
        self._open_function = open_function
        self._watched: dict[str, tuple[int, int]] = {}
        self._watch: Any = None
        self._opened_at = self._retry_at = self._last_change_at = 0.0
        self._refusal: str | None = None
        self.is_polling = False
        """True if the system sends no notices, so that changes must be polled."""

    def arm(self, directories: Iterable[str]) -> bool:
        """Watch these directories. Return True if they differ from those watched before, or if a new watch was
        needed: then everything must be checked again."""
        requested: dict[str, tuple[int, int]] = {}
        for path in directories:
            try:
                path.encode()
                status = os.stat(path)  # noqa: PTH116 - a Path for each of thousands of directories would be slow
            except (OSError, UnicodeEncodeError):
                # The directory was removed, or watchfiles can't handle its name. Regular checks of everything detect
                # changes in it.
                continue
            if os.access(path, os.R_OK):
                requested[path] = status.st_dev, status.st_ino
        if not requested:
            self.close()
            return False
        is_unchanged = requested == self._watched
        if is_unchanged and (self._watch is not None or time.monotonic() < self._retry_at):
            return False
        new_watch = self._open(sorted(requested))
        if new_watch is None and self._watch is not None:
            # Once the old watch is closed, the new one may be within the limit.
            self.close()
            new_watch = self._open(sorted(requested))
        self.close()
        self._watch, self._watched, self._opened_at = new_watch, requested, time.monotonic()
        if self._refusal is not None and not self.is_polling:
            log.warning("no change notifications (%s): polling instead", self._refusal)
        if new_watch is not None and self.is_polling:
            log.info("change notifications work again")
        self.is_polling = self._refusal is not None
        return new_watch is not None or not is_unchanged

    @property
    def has_no_watch(self) -> bool:
        """True if there is no watch now, whatever the reason."""
        return self._watch is None

    def watches(self, path: str) -> bool:
        """Return True if `path` is one of the watched directories."""
        return path in self._watched

    def wait(self, stop: threading.Event, timeout: float) -> set[str] | None:
        """Return the changed paths, an empty set after `timeout` seconds, or None if any path may have changed.

        Setting `stop` ends the wait; the result is then an empty set or None.
        """
        if self._watch is None:
            stop.wait(timeout)
            return set()
        interval = _ACTIVE_STEP_MS if time.monotonic() - self._last_change_at < _ACTIVE_SECONDS else _IDLE_STEP_MS
        try:
            changes = self._watch.watch(interval, interval, max(1, int(timeout * 1_000)), stop)
        except RuntimeError:
            watched, now = self._watched, time.monotonic()
            self.close()
            # If a watch fails immediately, wait before the next one: a bad name that changes often would cause
            # constant work.
            if now - self._opened_at < _FAILED_SECONDS:
                self._watched, self._retry_at = watched, now + _FAILED_SECONDS
            return None
        if isinstance(changes, str):
            # Without a timeout, it was stopped, and watchfiles has dropped its pending notices.
            return set() if changes == "timeout" else None
        self._last_change_at = time.monotonic()
        for change, path in changes:
            if change != _MODIFIED and path in self._watched:
                self._watched[path] = _NOT_WATCHED
        return None if len(changes) >= CHECK_ALL_THRESHOLD else {path for _, path in changes}

    def close(self) -> None:
        """Close the watch, its thread and its descriptor."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._watched = {}

    def _open(self, directories: list[str]) -> Any:
        self._refusal = None
        try:
            return self._open_function(directories)
        except (FileNotFoundError, PermissionError):
            # The directory was removed or became unreadable after `arm` had checked it. The system would allow a
            # watch.
            self._retry_at = time.monotonic() + _FAILED_SECONDS
        except (ImportError, OSError, RuntimeError) as error:
            self._retry_at = time.monotonic() + _REFUSED_SECONDS
            self._refusal = str(error)
        return None


async def wait_in_thread(
    wait: Callable[[threading.Event, float], T],
    max_seconds: float,
    limiter: CapacityLimiter,
    stop: threading.Event | None = None,
) -> T:
    """Run `wait` in a thread, limited by the `limiter`, and return its result. `wait` gets an event and
    `max_seconds`, and must return when the event is set or the time is over.

    The event is `stop`, if that is given. Cancellation sets it.
    """
    stop_event = stop or threading.Event()

    async def stop_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stop_event.set()

    async with anyio.create_task_group() as tasks:
        # The thread itself can't be cancelled, so a cancellable task stops it.
        tasks.start_soon(stop_when_cancelled)
        result = await to_thread.run_sync(wait, stop_event, max_seconds, limiter=limiter)
        tasks.cancel_scope.cancel()
    return result

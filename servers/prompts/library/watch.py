"""Watches the folders of the libraries for changes.

A notification of the operating system only causes a scan, and the scan decides whether something has changed. Changes
between two watches are not lost, since everything is scanned after each new watch: at once, or a second later after
the first one. Since notifications may be lost, everything is scanned every few seconds anyway, and more often if the
system sends none.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
from anyio import CapacityLimiter, to_thread

from servers.common.notices import Notices, wait_in_thread
from shared.text import escape

from ..errors import PromptError
from .libraries import Libraries, LibraryProblem
from .snapshot import ScanChanges

log = logging.getLogger("servers.prompts")

_QUIET_SECONDS, _MAX_WAIT_SECONDS = 0.05, 0.2
"""A burst of changes ends when nothing has changed for `_QUIET_SECONDS`, or at the latest after `_MAX_WAIT_SECONDS`.
An editor writes a file in several steps, and a checkout writes many files."""
_SWEEP_SECONDS, _POLL_SECONDS = 3.0, 1.0
"""Seconds between scans without a notification: if the system sends notifications, and if it does not."""
_STALL_SECONDS = 60.0
"""Seconds without a scan, in addition to the usual pause, after which the watch counts as stalled."""
_SCAN_TIME_DIVISOR = 20
"""The pause between scans without a notification is at least this many times as long as a scan."""


def _ignore(_: object) -> None:
    """Do nothing: the callback before the watch runs, or if there is no listener."""


class Watch:
    """Scans the libraries when they may have changed. The method `run` must run in a task."""

    def __init__(self, libraries: Libraries, notices: Notices | None = None) -> None:
        self._libraries = libraries
        self._notices = notices or Notices()
        self._limiter = CapacityLimiter(1)
        """Limits the threads that wait for notifications or run `arm` to one."""
        self._scan_limiter = CapacityLimiter(1)
        """Limits the threads that scan to one."""
        self._on_change: Callable[[ScanChanges], None] = _ignore
        self.on_problems: Callable[[Sequence[LibraryProblem]], None] = _ignore
        """Called with all problems of files whenever they change. It must not block."""
        self.on_polling: Callable[[bool], None] = _ignore
        """Called after each scan, with True if changes are polled because there are no notifications. It must not
        block."""
        self._broken: frozenset[str] = frozenset()
        self._reported: frozenset[LibraryProblem] = frozenset()
        self._scan_seconds = 0.0
        self._scanned_at = time.monotonic()
        self._parent_folders: frozenset[str] = frozenset()
        """The directories that are watched only because they contain the folder of a library."""
        self._roots = frozenset(str(library.root) for library in libraries.all)
        self._stop = threading.Event()

    @property
    def is_polling(self) -> bool:
        """True if the system sends no notifications, so that changes are polled."""
        return self._notices.is_polling

    @property
    def is_stalled(self) -> bool:
        """True if no scan has finished for far too long."""
        return time.monotonic() - self._scanned_at > _STALL_SECONDS + _SCAN_TIME_DIVISOR * self._scan_seconds

    async def run(self, on_change: Callable[[ScanChanges], None]) -> None:
        """Watch until cancelled. After each burst of changes, scan the libraries and call `on_change`.

        It gets only names of prompts that clients can get now or could get before. The libraries must have been
        scanned, and `arm` called, before this runs.
        """
        self._on_change = on_change
        self._report_problems()
        self.on_polling(self.is_polling)
        # Don't scan immediately: thousands of files would delay the first client.
        pause = _POLL_SECONDS
        try:
            while True:
                if await self._wait(pause):
                    await self._wait_for_pause()
                await self.scan()
                # The scan may have found new directories. If they need a new watch, scan again after it has begun.
                while await to_thread.run_sync(self.arm, limiter=self._limiter):
                    await self.scan()
                self.on_polling(self.is_polling)
                pause = max(
                    _POLL_SECONDS if self._notices.has_no_watch else _SWEEP_SECONDS,
                    _SCAN_TIME_DIVISOR * self._scan_seconds,
                )
        finally:
            self._notices.close()

    async def _wait_for_pause(self) -> None:
        """Wait until a burst of changes ends."""
        deadline = anyio.current_time() + _MAX_WAIT_SECONDS
        while await self._wait(_QUIET_SECONDS) and anyio.current_time() < deadline:
            pass

    def arm(self) -> bool:
        """Watch the current directories. Return True if this began a new watch, so that a scan is needed. Blocks."""
        directories = {directory for library in self._libraries.all for directory in library.directories}
        # Watch the parent directories too: a folder may be replaced by another, or be created again.
        parents = {library.root.parent for library in self._libraries.all}
        self._parent_folders = frozenset(map(str, parents - directories))
        return self._notices.arm(map(str, directories | parents))

    def scan_soon(self) -> None:
        """Scan soon, because another replica has detected a change, of which this process may get no notification."""
        self._stop.set()

    def is_relevant(self, path: str) -> bool:
        """Return True if an event at `path` is a reason to scan."""
        return path in self._roots or str(Path(path).parent) not in self._parent_folders

    async def _wait(self, seconds: float) -> bool:
        """Wait for a notification that is a reason to scan, and return True; return False after `seconds` seconds."""

        def wait(stop: threading.Event, seconds: float) -> bool:
            deadline = time.monotonic() + seconds
            while (remaining := deadline - time.monotonic()) > 0 and not stop.is_set():
                paths = self._notices.wait(stop, remaining)
                if paths is None or any(self.is_relevant(path) for path in paths):
                    return True
            return False

        try:
            return await wait_in_thread(wait, seconds, self._limiter, self._stop)
        finally:
            # A call of `scan_soon` during the next scan causes another scan after it.
            self._stop = threading.Event()

    async def scan(self) -> None:
        """Scan now. When this returns, all changes before the call are served, and clients have been notified. So
        code that writes a file calls this before it reports success."""
        changed = await to_thread.run_sync(self._find_changes, limiter=self._scan_limiter)
        self._report_problems()
        if changed is not None:
            self._on_change(changed)

    def _find_changes(self) -> ScanChanges | None:
        """Scan, and return the changes for `on_change`; None if there are none."""
        start = time.monotonic()
        before = frozenset(self._libraries.names) - self._broken
        changed = self._libraries.scan()
        self._scanned_at = time.monotonic()
        self._scan_seconds = self._scanned_at - start
        if changed is None:
            return None
        current = changed.names.intersection(self._libraries.names)
        broken: set[str] = set()
        for name in current:
            try:
                self._libraries.prompt(name)
            except PromptError:
                broken.add(name)
        self._broken = self._broken - changed.names | broken
        # Leave out prompts that are broken and were never available. They are announced once they are valid.
        return ScanChanges(changed.names & before | current - broken, changed.other_files_changed)

    def _report_problems(self) -> None:
        """If the problems have changed, log the new ones and call `on_problems`."""
        problems = frozenset(self._libraries.problems())
        if problems == self._reported:
            return
        for root, problem in sorted(problems - self._reported):
            log.warning("%s: %s", escape(root.name), problem)
        self._reported = problems
        self.on_problems(sorted(problems))

"""Looking at the libraries again when something happens in their folders.

A notice is only a reason to look, and the look decides whether something changed: so it does not matter how a change
comes about. Nothing gets lost between two watches, for after each new one everything is looked at: at once, or a
second later after the first one, which is made right after the libraries were read. Notices may get lost all the
same, so everything is looked at every few seconds anyway, and more often where there are none.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
from anyio import CapacityLimiter, to_thread

from servers.common.notices import Notices, wait_in_thread
from servers.prompts.errors import PromptError
from servers.prompts.library.libraries import Found, Libraries
from servers.prompts.library.snapshot import Changed
from shared.text import escape

log = logging.getLogger("servers.prompts")

_QUIET, _LONGEST = 0.05, 0.2
"""Seconds. An editor writes a file in several steps, a checkout writes many: they are one change, when nothing came
for a moment."""
_SWEEP_SECONDS, _POLL_SECONDS = 3.0, 1.0
_STALLED = 60.0
"""Seconds without a look after which something must be wrong, where a look takes no time."""
_SHARE = 20
"""Of the time, the looks without a notice take one part in so many at most."""


def _ignore(_: object) -> None:
    """Nobody is told before the watch runs, or wants to know."""


class Watch:
    """Looks at the libraries again whenever it should. `run` it in a task."""

    def __init__(self, libraries: Libraries, notices: Notices | None = None) -> None:
        self._libraries = libraries
        self._notices = notices or Notices()
        self._limiter = CapacityLimiter(1)
        """For what waits for notices, and arms."""
        self._looks = CapacityLimiter(1)
        """For looks, of which there may be one at a time."""
        self._told: Callable[[Changed], None] = _ignore
        self.on_problems: Callable[[Sequence[Found]], None] = _ignore
        """Given all that is wrong with files whenever that is something else; it must not wait."""
        self.on_polling: Callable[[bool], None] = _ignore
        """Told whether changes are looked for, for want of notices, whenever a watch was asked for; it must not
        wait."""
        self._broken: frozenset[str] = frozenset()
        self._said: frozenset[Found] = frozenset()
        self._took = 0.0
        self._looked_at = time.monotonic()
        self._around: frozenset[str] = frozenset()
        """The directories that are watched for a folder of the libraries only."""
        self._roots = frozenset(str(one.root) for one in libraries.all)
        self._stop = threading.Event()

    @property
    def degraded(self) -> bool:
        """Whether the system gives no notices, so that changes are looked for."""
        return self._notices.degraded

    @property
    def stalled(self) -> bool:
        """Whether no look has come to its end for much too long."""
        return time.monotonic() - self._looked_at > _STALLED + _SHARE * self._took

    async def run(self, told: Callable[[Changed], None]) -> None:
        """Watches until it is cancelled; calls `told` once for each burst of changes, when the libraries have what is
        new, with the names of prompts on offer alone. They were looked at before, and then `arm` was called."""
        self._told = told
        self._tell_problems()
        self.on_polling(self.degraded)
        # To look at thousands of files again at once would keep the first client waiting.
        rest = _POLL_SECONDS
        try:
            while True:
                if await self._wait(rest):
                    await self._settle()
                await self.look()
                # What is watched for is what the look found, so a new watch is a reason to look again.
                while await to_thread.run_sync(self.arm, limiter=self._limiter):
                    await self.look()
                self.on_polling(self.degraded)
                rest = max(_POLL_SECONDS if self._notices.deaf else _SWEEP_SECONDS, _SHARE * self._took)
        finally:
            self._notices.close()

    async def _settle(self) -> None:
        until = anyio.current_time() + _LONGEST
        while await self._wait(_QUIET) and anyio.current_time() < until:
            pass

    def arm(self) -> bool:
        """Watches the directories that there are now; whether that is a reason to look. Blocks."""
        inside = {directory for one in self._libraries.all for directory in one.directories}
        # In the one above it is seen when a folder is exchanged for another one, or comes back.
        above = {one.root.parent for one in self._libraries.all}
        self._around = frozenset(map(str, above - inside))
        return self._notices.arm(map(str, inside | above))

    def _wait_for_notice(self, stop: threading.Event, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not stop.is_set():
            paths = self._notices.wait(stop, left)
            if paths is None or any(self.concerns(path) for path in paths):
                return True
        return False

    def hear(self) -> None:
        """Looks soon: somebody else has seen a change, of which there may be no notice here."""
        self._stop.set()

    def concerns(self, path: str) -> bool:
        """Whether what happens at `path` is a reason to look."""
        return path in self._roots or str(Path(path).parent) not in self._around

    async def _wait(self, seconds: float) -> bool:
        try:
            return await wait_in_thread(self._wait_for_notice, seconds, self._limiter, self._stop)
        finally:
            # What is heard from here on is a reason to look after the look that comes now.
            self._stop = threading.Event()

    async def look(self) -> None:
        """Looks now. What was there when it began is served, and told, when it ends: so whoever has written something
        has a look before they say so."""
        changed = await to_thread.run_sync(self._find_changed, limiter=self._looks)
        self._tell_problems()
        if changed is not None:
            self._told(changed)

    def _find_changed(self) -> Changed | None:
        begun = time.monotonic()
        before = frozenset(self._libraries.names) - self._broken
        changed = self._libraries.look()
        self._looked_at = time.monotonic()
        self._took = self._looked_at - begun
        if changed is None:
            return None
        there = changed.names.intersection(self._libraries.names)
        broken: set[str] = set()
        for name in there:
            try:
                self._libraries.prompt(name)
            except PromptError:
                broken.add(name)
        self._broken = self._broken - changed.names | broken
        # A prompt that is broken from the beginning is not on offer: it is no news before it is right.
        return Changed(changed.names & before | there - broken, changed.others)

    def _tell_problems(self) -> None:
        """Says in the log what is wrong that was not wrong before."""
        found = frozenset(self._libraries.problems())
        if found == self._said:
            return
        for root, problem in sorted(found - self._said):
            log.warning("%s: %s", escape(root.name), problem)
        self._said = found
        self.on_problems(sorted(found))

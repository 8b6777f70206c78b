"""The one watch that this process asks of the operating system, for directories and not what is below them.

It is replaced as a whole when the directories become others: the new watch is open before the old one is closed. A
directory counts as the same only with the same inode, because a watch does not survive its directory. watchfiles is
imported here, on the first use, and nowhere else.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["Notices", "open_watch"]

log = logging.getLogger("servers.prompts")

_STEP_MS = 20
_REFUSED_SECONDS, _ERRED_SECONDS = 30.0, 1.0


def open_watch(directories: list[str]) -> Any:
    """A watch of watchfiles on these directories. Raises ImportError, OSError, RuntimeError."""
    from watchfiles._rust_notify import RustNotify  # noqa: PLC0415 (costs nothing until something is watched)

    # Told to ignore what it may not read, it ignores the limit on watches as well.
    return RustNotify(directories, False, False, 0, False, False)


class Notices:
    """Notices of what happens in a changing set of directories. Blocking, and for one thread at a time."""

    def __init__(self, opener: Callable[[list[str]], Any] = open_watch) -> None:
        self._opener = opener
        self._watch: Any = None
        self._armed: dict[str, tuple[int, int]] = {}
        self._again = 0.0
        self.degraded = False
        """Whether there are none, so that changes must be looked for."""

    def arm(self, directories: Iterable[Path]) -> bool:
        """Watches these directories; whether that took a new watch, so that everything needs another look."""
        wanted = _identities(directories)
        if time.monotonic() < self._again if self.deaf else wanted == self._armed:
            return False
        fresh = self._opened(sorted(wanted))
        if fresh is None and not self.deaf:
            # Alone it may keep to the limit on watches.
            self.close()
            fresh = self._opened(sorted(wanted))
        self.close()
        self._watch, self._armed = fresh, wanted
        return fresh is not None

    @property
    def deaf(self) -> bool:
        """Whether there is no watch now, for whatever reason."""
        return self._watch is None

    def wait(self, stop: threading.Event, seconds: float) -> set[str] | None:
        """The paths that something happened to; none after `seconds`, or when it is to stop; None when it may have
        happened to any."""
        if self._watch is None:
            stop.wait(seconds)
            return set()
        try:
            found = self._watch.watch(_STEP_MS, _STEP_MS, max(1, int(seconds * 1_000)), stop)
        except RuntimeError:  # one name that is no UTF-8 is enough for that, and there will be no more notices
            self.close()
            self._again = time.monotonic() + _ERRED_SECONDS
            return None
        return set() if isinstance(found, str) else {path for _, path in found}

    def close(self) -> None:
        """Ends the watch, its thread and its descriptor."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _opened(self, directories: list[str]) -> Any:
        try:
            found = self._opener(directories)
        except (FileNotFoundError, PermissionError):  # it is gone since it was looked at, and that is no refusal
            self._again = time.monotonic() + _ERRED_SECONDS
            return None
        except (ImportError, OSError, RuntimeError) as error:
            if not self.degraded:
                log.warning("no notices of changes (%s): looking for them instead", error)
            self._again, self.degraded = time.monotonic() + _REFUSED_SECONDS, True
            return None
        self.degraded = False
        return found


def _identities(directories: Iterable[Path]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for path in map(str, directories):
        try:
            path.encode()
            status = os.stat(path)  # noqa: PTH116 - a path for each of thousands of directories would take long
        except (OSError, UnicodeEncodeError):  # it is gone, or watchfiles can't take its name
            continue
        if os.access(path, os.R_OK):
            found[path] = status.st_dev, status.st_ino
    return found

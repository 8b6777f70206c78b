"""The one watch this process asks of the operating system.

It watches directories, each on its own and not what is below them, and is replaced as a whole when the set changes:
the new watch is open before the old one is closed. Directories count as the same only with the same inode, because a
watch does not survive its directory. watchfiles is imported here, on the first use, and nowhere else. Where it is
missing or the system refuses (its limit on watches, a directory gone at the wrong moment), `wait` returns every
second, so that the caller looks for itself.
"""

import os
import threading
from collections.abc import Iterable
from typing import Any

_STEP_MS = 30
_BACKSTOP_MS = 5_000
_POLL_SECONDS = 1.0


class Notices:
    """An operating system watch on a changing set of directories. Blocking; `close` it when done."""

    def __init__(self) -> None:
        self._armed: dict[str, tuple[int, int]] = {}
        self._watch: Any = None
        self.degraded = False
        """Whether the system gives no notices, so that changes are found by looking every second."""

    def arm(self, directories: Iterable[str]) -> bool:
        """Watch these directories; whether that took a new watch, so that everything needs another look."""
        wanted = _identities(directories)
        if wanted == self._armed and (self._watch is not None or self.degraded):
            return False
        fresh = _opened(sorted(wanted))
        self.close()
        self._watch, self._armed, self.degraded = fresh, wanted, fresh is None
        return True

    def wait(self, stop: threading.Event) -> set[str] | None:
        """The paths something happened to; None when it is time to look at everything."""
        if self._watch is None:
            return set() if stop.wait(_POLL_SECONDS) else None
        found = self._watch.watch(_STEP_MS, _STEP_MS, _BACKSTOP_MS, stop)
        # Told to stop, watchfiles forgets the notices it holds, so then too everything needs a look.
        return None if isinstance(found, str) else {path for _, path in found}

    def close(self) -> None:
        """End the watch, its thread and its descriptor."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._armed = {}


def _identities(directories: Iterable[str]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for path in directories:
        try:
            path.encode()
            status = os.lstat(path)
        except (OSError, UnicodeEncodeError):
            # Gone, or a name watchfiles cannot take: the backstop finds what changes there.
            continue
        found[path] = status.st_dev, status.st_ino
    return found


def _opened(directories: list[str]) -> Any:
    try:
        from watchfiles._rust_notify import RustNotify  # noqa: PLC0415 (costs nothing until something is watched)

        return RustNotify(directories, False, False, 0, False, True)
    except (ImportError, OSError, RuntimeError):
        return None

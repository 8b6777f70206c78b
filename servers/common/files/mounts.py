"""Detects places on local file systems, where a small read never waits for another machine or program.

On a network or FUSE file system even a lookup can wait forever, so a place is compared with the mount table by its
names, before any access: `/proc/self/mountinfo` lists the mounts, and polling it shows when they have changed. If the
table can't be read, nothing is local. A file system is local only if its type is in the list below.
"""

import os
import re
import select
import sys
from collections.abc import Iterable
from pathlib import Path

from servers.common.files.names import components
from shared.program.files.entries import Place
from shared.program.files.system import BASE_FLAGS

MOUNTINFO = Path("/proc/self/mountinfo")
_LOCAL = frozenset({"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"})
"""Types of file systems that never wait for another machine."""
_ESCAPE = re.compile(r"\\([0-7]{3})")

Names = tuple[str, ...]


class Mounts:
    """The mounts on and below the roots, which are canonical. For one thread; `close` it when done."""

    def __init__(self, roots: Iterable[Path], table: Path = MOUNTINFO) -> None:
        self._roots = [tuple(components(str(root))) for root in roots]
        self._remote: list[list[Names]] = []
        """For each root the mount points below it that are not local; `()` is the root itself."""
        self._descriptor = -1
        if sys.platform == "win32" or not hasattr(select, "poll"):
            return
        try:
            self._descriptor = os.open(table, os.O_RDONLY | BASE_FLAGS)
        except OSError:
            return
        self._changes = select.poll()
        # Only a change is an error condition; the table can always be read (proc_pid_mounts(5)).
        self._changes.register(self._descriptor, select.POLLPRI)
        self._read_table()

    @property
    def is_known(self) -> bool:
        """True if the mount table can be read. Without it, nothing is local."""
        return self._descriptor >= 0

    def is_local(self, place: Place) -> bool:
        """Return True if every directory on the way to `place` is local. Links are not followed."""
        if sys.platform == "win32" or self._descriptor < 0:
            return False
        if self._changes.poll(0):
            self._read_table()
        remote = self._remote[place.root_index]
        return not remote or not any(place.parts[: len(names)] == names for names in remote)

    def close(self) -> None:
        """Close the table. Nothing is local anymore."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _read_table(self) -> None:
        # True for each mount point with a local file system; the last mount at a point counts.
        mounts: dict[Names, bool] = {}
        try:
            # A copy of the descriptor is read, since the file object closes its own, and the table is still polled.
            with os.fdopen(os.dup(self._descriptor), "rb") as table:
                table.seek(0)
                lines = table.read().rstrip(b"\n").split(b"\n")
            for line in lines:
                fields = os.fsdecode(line).split(" ")
                # After any number of optional fields come a hyphen and the type (proc_pid_mountinfo(5)).
                file_system_type = fields[fields.index("-") + 1]
                point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[4])
                mounts[tuple(components(point))] = file_system_type in _LOCAL
        except (OSError, LookupError, ValueError):
            # If the table has an unknown format, no mount contains the roots, so nothing is local.
            mounts = {}
        self._remote = [_remote_below(root, mounts) for root in self._roots]


def _remote_below(root: Names, mounts: dict[Names, bool]) -> list[Names]:
    root_mount = max((point for point in mounts if root[: len(point)] == point), key=len, default=None)
    if root_mount is None or not mounts[root_mount]:
        return [()]
    return [
        point[len(root) :]
        for point, is_local in mounts.items()
        if not is_local and len(point) > len(root) and point[: len(root)] == root
    ]

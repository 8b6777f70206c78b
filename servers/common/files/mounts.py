"""Tells whether a place is on a local file system, where a small read never waits for another machine or program.

On a network or FUSE file system even a lookup can wait forever. So before any access, the names of a place are
compared with the mount table: `/proc/self/mountinfo` lists the mounts, and polling it shows when they have changed.
If the table can't be read, no place counts as local. A file system is local only if its type is in `_LOCAL`.
"""

import os
import re
import select
import sys
from collections.abc import Iterable
from pathlib import Path

from shared.program.files.entries import Place
from shared.program.files.system import BASE_FLAGS

from .names import components

MOUNTINFO = Path("/proc/self/mountinfo")
_LOCAL = frozenset({"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"})
"""Types of file systems that never wait for another machine."""
_ESCAPE = re.compile(r"\\([0-7]{3})")

Names = tuple[str, ...]


class Mounts:
    """The mounts on and below the roots. The paths of the roots must be canonical. Only one thread may use it;
    `close` it when done."""

    def __init__(self, roots: Iterable[Path], table: Path = MOUNTINFO) -> None:
        self._roots = [tuple(components(str(root))) for root in roots]
        self._remote: list[list[Names]] = []
        """For each root, the mount points below it that are not local, as relative names; `()` is the root itself."""
        self._descriptor = -1
        if sys.platform == "win32" or not hasattr(select, "poll"):
            return
        try:
            self._descriptor = os.open(table, os.O_RDONLY | BASE_FLAGS)
        except OSError:
            return
        self._changes = select.poll()
        # A change of the mounts is reported as POLLPRI; the table is always readable (proc_pid_mounts(5)).
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
        # For each mount point, whether its file system is local. The last mount at a point counts.
        mounts: dict[Names, bool] = {}
        try:
            # Read from a copy of the descriptor, because the file object closes it, and the original is still polled.
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
            # The table has an unknown format. Without mounts, no root is local.
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

"""Where the bytes of a read come from: an open file, or a small one that was read already."""

import os
from typing import NamedTuple, Protocol

from shared.kit.rooted.entries import Handle


class Source(Protocol):
    """The bytes of one file."""

    @property
    def stat(self) -> os.stat_result:
        """What the file was before anything of it was read."""

    def read(self, position: int, count: int) -> bytes:
        """`count` bytes from `position` on, fewer only at the end of the file."""


_LAST = 2**63 - 1
"""The last position that the system counts to."""


class Opened(NamedTuple):
    """An open file. For one thread: it has one position."""

    handle: Handle

    @property
    def stat(self) -> os.stat_result:
        """What the file was when it was opened."""
        return self.handle.stat

    def read(self, position: int, count: int) -> bytes:
        """`count` bytes from `position` on, fewer only at the end of the file."""
        descriptor = self.handle.descriptor
        if position > _LAST - count:
            return b""  # some file systems take the position, and then refuse to read
        try:
            os.lseek(descriptor, position, os.SEEK_SET)
        except OSError:
            return b""  # no file of this file system is that long
        blocks: list[bytes] = []
        while count > 0 and (block := os.read(descriptor, count)):
            blocks.append(block)
            count -= len(block)
        return blocks[0] if len(blocks) == 1 else b"".join(blocks)

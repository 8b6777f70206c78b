"""The files of one running server: what its tools work on, and who tells when they change."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from .access.beneath import Beneath
from .access.denylist import Denylist
from .access.mounts import Mounts
from .access.roots import Place, Roots
from .finding.listing import ListedEntry, list_directory
from .reading import read
from .reading.read import BytesRead, TextRead
from .reading.small import SmallFiles
from .watching.watcher import Watcher

__all__ = ["Files", "open_files"]


@dataclass(frozen=True, slots=True)
class Files:
    """The allowed directories, held open, and the watch over them."""

    beneath: Beneath
    small: SmallFiles
    watcher: Watcher

    def place(self, written: str) -> Place:
        """Where a path or a `file:` URI points. Raises FilesError."""
        return self.beneath.roots.place(written)

    def uri(self, place: Place) -> str:
        """The `file:` URI of a place."""
        return self.beneath.roots.uri(place)

    async def read_text(
        self, place: Place, max_bytes: int, head: int | None = None, tail: int | None = None
    ) -> TextRead:
        """The text at `place`, or a part of it: at once where that is quick, else in a thread. Raises FilesError."""
        data = self.small.read(place)
        if data is not None:
            return read.text_in(data, place, max_bytes, head, tail)
        return await to_thread.run_sync(read.read_text, self.beneath, place, max_bytes, head, tail)

    async def read_bytes(self, place: Place, max_bytes: int) -> BytesRead:
        """The bytes at `place`: at once where that is quick, else in a thread. Raises FilesError."""
        data = self.small.read(place)
        if data is not None:
            return read.bytes_in(data, place, max_bytes)
        return await to_thread.run_sync(read.read_bytes, self.beneath, place, max_bytes)

    def top_level(self, limit: int) -> list[ListedEntry]:
        """The files that stand directly in the allowed directories, as far as they are not denied.

        From each directory come `limit` at most. Raises FilesError.
        """
        roots = [Place(index, (), str(path)) for index, path in enumerate(self.beneath.roots.paths)]
        entries = [entry for root in roots for entry in list_directory(self.beneath, root, limit).entries]
        return [one for one in entries if one.kind == "file" and not self.beneath.roots.denies(self.place(one.uri))]


@asynccontextmanager
async def open_files(
    paths: Sequence[Path],
    writable: bool | Sequence[bool],
    changed: Callable[[str], None],
    denylist: Denylist | None = None,
) -> AsyncIterator[Files]:
    """Opens the directories, and watches what is asked for until the end. Raises ValueError for a bad directory.

    `writable` says of all directories, or of each in turn, whether files may be changed there. Without a `denylist`
    it is the built-in one.
    """

    async def tell(key: str) -> None:
        changed(key)

    beneath = Beneath(Roots(paths, writable, denylist))
    mounts = Mounts(beneath.roots.paths)
    watcher = Watcher(beneath, tell)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watcher.run)
            yield Files(beneath, SmallFiles(beneath, mounts), watcher)
            tasks.cancel_scope.cancel()
    finally:
        mounts.close()
        beneath.close()

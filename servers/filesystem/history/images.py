"""Images: the contents of files before they were changed.

Small contents are stored in the journal itself, so that a change costs one disk write. Larger contents become a file
in the journal's folder: on the same file system a hard link to the file that is about to be replaced or deleted,
which takes neither time nor space; otherwise a copy. Only the owner can read the folder.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from servers.common.files.rooted_files import RootedFiles
from shared.program.files.atomic import discard, link, sync, sync_directory, temporary_name, write_all
from shared.program.files.entries import Entry, create, entry_at, stat_entry

MAX_INLINE_BYTES = 65_536
"""Maximum size of a small file, in bytes."""
_BLOCK_BYTES = 1024 * 1024


class Image(NamedTuple):
    """The earlier contents of a file of `size` bytes: `data`, or the file `name`; with neither, the first bytes of
    its current contents, since data was only appended to it.
    """

    size: int
    data: bytes | None = None
    name: str | None = None


class Images:
    """Stores images, the larger ones as files in a folder. Thread-safe."""

    def __init__(self, folder: Path, run: str) -> None:
        """Open the folder. The names of new files begin with `run`."""
        self._folder = folder
        self._run = run

    def store(self, rooted: RootedFiles, entry: Entry, size: int, data: bytes | None) -> Image:
        """Store the contents of the file at the entry: `data`, which may be None if they are longer than
        `MAX_INLINE_BYTES`, since they are then linked or copied. Raises OSError, PathError.
        """
        if data is not None and size <= MAX_INLINE_BYTES:
            return Image(size, data)
        name = temporary_name(f"{self._run}-")
        image = entry_at(self._folder / name)
        try:
            link(entry, image)
        except (OSError, NotImplementedError):
            _copy(rooted, entry, image, data)
        return Image(size, name=name)

    def sync_names(self) -> None:
        """Make the names of the files durable."""
        sync_directory(entry_at(self._folder / "names"))

    def read(self, image: Image, now: bytes = b"") -> bytes:
        """Return the contents of the image. `now` is the current contents of the file, for an image of its first
        bytes. Raises OSError.
        """
        if image.data is not None:
            return image.data
        return now[: image.size] if image.name is None else (self._folder / image.name).read_bytes()

    def drop(self, names: Iterable[str]) -> None:
        """Delete these files."""
        for name in names:
            discard(entry_at(self._folder / name))

    def drop_unused(self, used: Iterable[str], is_alive: Callable[[str], bool]) -> None:
        """Delete the files of processes that were killed before they recorded their change. `is_alive` returns True
        if the process of a run is still running.
        """
        names = {path.name for path in self._folder.iterdir()} - set(used)
        self.drop(name for name in names if not is_alive(name.partition("-")[0]))


def _copy(rooted: RootedFiles, entry: Entry, image: Entry, data: bytes | None) -> None:
    target = create(image, 0o600)
    with ExitStack() as on_failure:
        on_failure.callback(discard, image)
        try:
            for block in _blocks(rooted, entry) if data is None else (data,):
                write_all(target, block)
            sync(target)
        finally:
            os.close(target)
        on_failure.pop_all()


def _blocks(rooted: RootedFiles, entry: Entry) -> Iterator[bytes]:
    handle = rooted.open_entry(entry._replace(stat=stat_entry(entry)), entry.place.path)
    with os.fdopen(handle.descriptor, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block

"""Images: the contents of files before they were changed.

Small contents are stored in the journal itself, so that a change costs one disk write. Larger contents become a file
in the journal's folder. On the same file system, it is a hard link to the file that is about to be replaced or
deleted, which takes neither time nor space; otherwise it is a copy. Only the owner can read the folder.
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
"""Maximum size of contents that are stored in the journal itself, in bytes."""
_BLOCK_BYTES = 1024 * 1024


class Image(NamedTuple):
    """The earlier contents of a file, `size` bytes: `data`, or the contents of the file `name` in the folder. If both
    are None, data was only appended: the earlier contents are the first `size` bytes of the file.
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
        """Store the contents of the file at the entry. `data` are these contents; it may be None if they are longer
        than `MAX_INLINE_BYTES`, since the file is then linked or copied. Raises OSError, PathError.
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
        """Return the contents of the image. `now` is the current contents of the file, which an image without `data`
        and `name` needs. Raises OSError.
        """
        if image.data is not None:
            return image.data
        return now[: image.size] if image.name is None else (self._folder / image.name).read_bytes()

    def drop(self, names: Iterable[str]) -> None:
        """Delete these files."""
        for name in names:
            discard(entry_at(self._folder / name))

    def drop_unused(self, used: Iterable[str], is_alive: Callable[[str], bool]) -> None:
        """Delete files not in `used` whose process was killed before it recorded the change. `is_alive` returns True
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

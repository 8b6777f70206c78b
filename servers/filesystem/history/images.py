"""What files held before they were changed.

Small ones are kept by the journal itself, so that a change costs one write to the disk. A larger one becomes a file
of the journal's folder: where both are on one file system, a second name for the file that is about to be replaced or
deleted, which takes neither time nor room; else a copy. The folder is its owner's alone.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from servers.common.files.rooted_files import RootedFiles
from shared.program.files.atomic import discard, fresh_name, link, sync, sync_directory, write_all
from shared.program.files.entries import Entry, create, current, entry_at

INLINE = 65_536
"""Bytes up to which a file is small."""
_BLOCK = 1024 * 1024


class Image(NamedTuple):
    """What a file of `size` bytes held: `data`, or the file `name`; without both, the first bytes of what it holds
    now, since something was only added to it."""

    size: int
    data: bytes | None = None
    name: str | None = None


class Images:
    """The folder of the larger ones. Thread-safe."""

    def __init__(self, folder: Path, run: str) -> None:
        """`run` is what the names of the files begin with that are kept from now on."""
        self._folder = folder
        self._run = run

    def keep(self, beneath: RootedFiles, entry: Entry, size: int, data: bytes | None) -> Image:
        """Keep what the file at the entry holds, which is `data`; that can be left out where it is more than `INLINE`
        bytes. Raises OSError, PathError."""
        if data is not None and size <= INLINE:
            return Image(size, data)
        name = fresh_name(f"{self._run}-")
        image = entry_at(self._folder / name)
        try:
            link(entry, image)
        except (OSError, NotImplementedError):
            _copy(beneath, entry, image, data)
        return Image(size, name=name)

    def settle(self) -> None:
        """Make the names of the files durable."""
        sync_directory(entry_at(self._folder / "names"))

    def read(self, image: Image, now: bytes = b"") -> bytes:
        """What the image holds; `now` is what the file holds, where only its start is meant. Raises OSError."""
        if image.data is not None:
            return image.data
        return now[: image.size] if image.name is None else (self._folder / image.name).read_bytes()

    def drop(self, names: Iterable[str]) -> None:
        """Take these files away."""
        for name in names:
            discard(entry_at(self._folder / name))

    def drop_unused(self, used: Iterable[str], is_alive: Callable[[str], bool]) -> None:
        """Take away what a process left here that was killed before it noted down its change. `is_alive` tells
        whether a run still goes on."""
        names = {path.name for path in self._folder.iterdir()} - set(used)
        self.drop(name for name in names if not is_alive(name.partition("-")[0]))


def _copy(beneath: RootedFiles, entry: Entry, image: Entry, data: bytes | None) -> None:
    target = create(image, 0o600)
    with ExitStack() as on_failure:
        on_failure.callback(discard, image)
        try:
            for block in _blocks(beneath, entry) if data is None else (data,):
                write_all(target, block)
            sync(target)
        finally:
            os.close(target)
        on_failure.pop_all()


def _blocks(beneath: RootedFiles, entry: Entry) -> Iterator[bytes]:
    handle = beneath.open_entry(entry._replace(stat=current(entry)), entry.place.written)
    with os.fdopen(handle.descriptor, "rb") as file:
        while block := file.read(_BLOCK):
            yield block

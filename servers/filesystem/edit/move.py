"""Moving and copying: a file, a link itself, or a directory with all below it, to a name that is free.

A copy is made beside its destination and gets the name when it is complete, so nothing half copied is ever found
there. It has the contents and the permissions of what it was made of, not the times and the owner.
"""

import os
import stat
from collections.abc import Callable
from contextlib import ExitStack, suppress

from servers.common.files.locks import locked
from servers.common.files.names import components
from servers.common.files.rooted_files import RootedFiles, missing
from servers.filesystem.edit.delete import Bounds, children, empty, is_directory, stat_of
from servers.filesystem.edit.preconditions import require_file_name, require_free, require_same
from servers.filesystem.errors import FilesError
from shared.coded_errors import os_errors
from shared.program.files.atomic import beside, discard, give_name, rename_to_free, sync, sync_directory, write_all
from shared.program.files.entries import (
    Entry,
    Place,
    child,
    copy_link,
    create,
    current,
    make_directory,
    narrow_mode,
    opened,
    remove_directory,
)
from shared.text import quoted

MAX_COPIED = 1024 * 1024 * 1024
"""Bytes that one call copies."""

_BLOCK = 1024 * 1024


def move(beneath: RootedFiles, source: Place, destination: Place, etag: str | None = None) -> None:
    """Give what is at `source` the name `destination`, which must be free; with `etag`, only while the source
    has that.

    In the window of `give_name`, and for a directory always, what appears at the destination meanwhile (for a
    directory: an empty directory) would be replaced.
    """
    roots = beneath.roots
    for place in (source, destination):
        roots.require_writable(place)
        roots.require_movable(place)
    with beneath.locate(source, follow=False) as old:
        if old.stat is None:
            raise missing(old, source.written)
        with beneath.locate(destination, follow=False) as new, locked(old, new):
            for entry in (old, new):
                roots.require_writable(entry.place)
                roots.require_movable(entry.place)
            found = current(old)
            if found is None:
                raise missing(old, source.written)
            require_same(found, etag, source.written)
            require_free(current(new), destination.written)
            if not stat.S_ISDIR(found.st_mode):
                require_file_name(source)
                require_file_name(destination)
            (rename_to_free if stat.S_ISDIR(found.st_mode) else give_name)(old, new)
            sync_directory(new)
            sync_directory(old)


def copy(
    beneath: RootedFiles,
    source: Place,
    destination: Place,
    checkpoint: Callable[[], None] = lambda: None,
    etag: str | None = None,
) -> tuple[int, int]:
    """Make a copy of what is at `source` under the name `destination`, which must be free: its entries and bytes.
    With `etag`, only while the source has that.

    Raises `already_exists`, `too_large`, `special_file`, and `bad_path` for a directory that would hold its own copy.
    `checkpoint` may raise at any time; whatever ends it, the copy so far is taken away. A single file is on the disk
    when this returns; the files of a directory get there when the system writes them.
    """
    beneath.roots.require_writable(destination)
    with beneath.locate(source, follow=False) as old:
        if old.stat is None:
            raise missing(old, source.written)
        require_same(old.stat, etag, source.written)
        if not is_directory(old):
            require_file_name(source)
            require_file_name(destination)
        with beneath.locate(destination, follow=False) as new, locked(new):
            beneath.roots.require_writable(new.place)
            require_free(current(new), destination.written)
            outer, inner = (components(beneath.roots.path(entry.place)) for entry in (old, new))
            if inner[: len(outer)] == outer:
                raise FilesError("bad_path", source.written, "is a directory that would hold its own copy")
            copying = _Copying(beneath, source.written, checkpoint)
            fresh = beside(new)
            with ExitStack() as on_failure:
                on_failure.callback(_discard_all, fresh, beneath)
                copying.copy(old, fresh, 1)
                (rename_to_free if is_directory(old) else give_name)(fresh, new)
                on_failure.pop_all()
            sync_directory(new)
    return copying.bounds.entries, copying.size


def _discard_all(fresh: Entry, beneath: RootedFiles) -> None:
    found = current(fresh)
    if found is None or not stat.S_ISDIR(found.st_mode):
        discard(fresh)
        return
    with suppress(OSError, FilesError):
        empty(fresh, Bounds(beneath, ""))
        remove_directory(fresh)


class _Copying:
    """One copy on its way: its limits, and what was used of them."""

    def __init__(self, beneath: RootedFiles, written: str, checkpoint: Callable[[], None]) -> None:
        self.bounds = Bounds(beneath, written, checkpoint=checkpoint)
        self.size = 0
        self._beneath = beneath
        self._written = written
        self._checkpoint = checkpoint

    def copy(self, old: Entry, new: Entry, depth: int) -> None:
        """Copy whatever `old` is."""
        self.bounds.count(old)
        self._beneath.roots.require_allowed(new.place)
        mode = 0 if old.stat is None else old.stat.st_mode
        if stat.S_ISDIR(mode):
            self._directory(old, new, depth, stat.S_IMODE(mode) & 0o777)
        elif stat.S_ISLNK(mode):
            copy_link(old, new)
        elif stat.S_ISREG(mode):
            self._file(old, new, durable=depth == 1)
        else:
            shown = quoted(old.place.parts[-1])
            raise FilesError("special_file", self._written, f"{shown} is neither a file, nor a directory, nor a link")

    def _directory(self, old: Entry, new: Entry, depth: int, mode: int) -> None:
        with ExitStack() as stack:
            with os_errors(self._written):
                source = stack.enter_context(opened(old))
            self.bounds.enter(stat_of(old, source), depth)
            # Its owner must be able to fill it; what is too much goes when it is full.
            make_directory(new, mode | stat.S_IRWXU)
            target = stack.enter_context(opened(new))
            for name, entry in children(old, source):
                self.copy(entry, child(new, target, name), depth + 1)
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                narrow_mode(target, mode)

    def _file(self, old: Entry, new: Entry, durable: bool) -> None:
        with os_errors(self._written):
            handle = self._beneath.open_entry(old, self._written)
        try:
            self._grow(handle.stat.st_size, 0)
            target = create(new, stat.S_IMODE(handle.stat.st_mode) & 0o777)
            try:
                while block := os.read(handle.descriptor, _BLOCK):
                    self._checkpoint()
                    self._grow(0, len(block))
                    write_all(target, block)
                if durable:
                    sync(target)
            finally:
                os.close(target)
        finally:
            os.close(handle.descriptor)

    def _grow(self, expected: int, copied: int) -> None:
        self.size += copied
        if self.size + expected > MAX_COPIED:
            raise FilesError("too_large", self._written, f"holds more than {MAX_COPIED:,} bytes")

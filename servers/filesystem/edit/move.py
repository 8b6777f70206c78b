"""Moves or copies a file, a link (not its target), or a directory with its contents, to an unused name.

A copy is made under a temporary name next to its destination, and renamed when it is complete, so a partial copy
never appears at the destination. It has the contents and the metadata of its source, but not the times; the result
lists any owner, group or attributes that could not be kept.

A move to another file system copies the source with its times, and then deletes it. It is refused if it would lose
anything.
"""

import errno
import math
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from servers.common.files.locks import lock_entries
from servers.common.files.names import components
from servers.common.files.rooted_files import RootedFiles, missing_error
from shared.coded_errors import os_errors
from shared.program.files.atomic import (
    check_and_rename,
    discard,
    rename_to_unused,
    sync,
    sync_directory,
    temporary_entry,
    write_all,
)
from shared.program.files.entries import (
    Entry,
    Handle,
    Place,
    child,
    copy_link,
    create,
    enter_directory,
    make_directory,
    remove_directory,
    stat_entry,
    unlink,
)
from shared.program.files.metadata import Attributes, attributes_of, initial_mode, set_link_owner, set_metadata
from shared.text import quote_name

from ..errors import FilesError
from ..history.recording import NOT_RECORDED, Recorder, Survey
from ..history.states import DIRECTORY, State, new_digest
from .delete import Bounds, Mark, children, empty, is_directory, stat_of
from .preconditions import (
    require_file_name,
    require_free,
    require_new_name,
    require_same,
)

MAX_COPIED = 1024 * 1024 * 1024
"""Maximum number of bytes that one call copies."""

_BLOCK_BYTES = 1024 * 1024
"""Number of bytes copied between checks for a cancellation."""


class CopyResult(NamedTuple):
    """The result of a copy: the number of entries, `size` in bytes, and the metadata that was `lost`."""

    entries: int
    size: int
    lost: Sequence[str]


def move(
    rooted: RootedFiles,
    source: Place,
    destination: Place,
    checkpoint: Callable[[], None] = lambda: None,
    etag: str | None = None,
    recorder: Recorder = NOT_RECORDED,
) -> None:
    """Rename the entry at `source` to `destination`, which must not exist. With `etag`, rename it only if the
    source's etag still matches. `checkpoint` may raise until the first rename.

    A file that another program creates at the destination during the window described at `rename_to_unused` is
    replaced. So is an empty directory that appears there while a directory is moved.
    """
    roots = rooted.roots
    for place in (source, destination):
        roots.require_writable(place)
        roots.require_movable(place)
    with rooted.locate(source, follow=False) as old:
        if old.stat is None:
            raise missing_error(old, source.path)
        with rooted.locate(destination, follow=False) as new, lock_entries(old, new):
            for entry in (old, new):
                roots.require_writable(entry.place)
                roots.require_movable(entry.place)
            status = stat_entry(old)
            if status is None:
                raise missing_error(old, source.path)
            require_same(status, etag, source.path)
            require_free(stat_entry(new), destination.path, old.place)
            require_new_name(rooted, new.place, old.place)
            _require_outside(rooted, old, new, source.path)
            if not stat.S_ISDIR(status.st_mode):
                require_file_name(source)
                require_file_name(destination)
            with recorder.record(rooted, "move", lambda survey: survey.record_move(old, new)):
                rename_entry(rooted, old._replace(stat=status), new, checkpoint)
            sync_directory(new)
            sync_directory(old)


def _require_outside(rooted: RootedFiles, old: Entry, new: Entry, path: str) -> None:
    """Raise `bad_path` if `new` is inside `old`, whose path is `path`."""
    outer, inner = (components(rooted.roots.path(entry.place)) for entry in (old, new))
    if inner[: len(outer)] == outer:
        raise FilesError("bad_path", path, "is a directory that would contain itself")


def rename_entry(rooted: RootedFiles, old: Entry, new: Entry, checkpoint: Callable[[], None]) -> None:
    """Rename `old` to `new`, which must not exist and may be on another file system. Raises the errors of `move`."""
    try:
        (check_and_rename if is_directory(old) else rename_to_unused)(old, new)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _move_across(rooted, old, new, checkpoint)


def _move_across(rooted: RootedFiles, old: Entry, new: Entry, checkpoint: Callable[[], None]) -> None:
    """Move to another file system by a copy and a deletion. Raises FilesError with code `cross_device` if the copy
    would lose something, and with code `changed` if another program changed the source during the copy."""
    path = old.place.path
    copy_run = _Copy(rooted, path, checkpoint, is_move=True)
    with _temporary_copy(rooted, old, new) as temporary:
        copy_run.copy(old, temporary, 1)
        if copy_run.lost:
            reason = f"is on another file system, where it would lose: {', '.join(copy_run.lost)}"
            raise FilesError("cross_device", path, reason, "Copy it, then delete it.")
        copy_run.require_unchanged(old)
    try:
        if is_directory(old):
            empty(old, Bounds(rooted, path))
            remove_directory(old)
        else:
            unlink(old)
    except OSError:
        if not is_directory(old):
            unlink(new)
            raise
        reason = "is complete at its destination, but the original could not be deleted completely"
        raise FilesError("not_empty", path, reason, "Delete the rest.") from None


@contextmanager
def _temporary_copy(
    rooted: RootedFiles,
    old: Entry,
    new: Entry,
    recorder: Recorder = NOT_RECORDED,
    describe: Callable[[Survey], None] = lambda _: None,
) -> Iterator[Entry]:
    """Yield a temporary entry next to `new`, at which the block copies `old`. If the block succeeds, the copy is
    renamed to `new`; otherwise it is deleted."""
    temporary = temporary_entry(new)

    def discard_all() -> None:
        status = stat_entry(temporary)
        if status is None or not stat.S_ISDIR(status.st_mode):
            discard(temporary)
            return
        with suppress(OSError, FilesError):
            empty(temporary, Bounds(rooted, ""))
            remove_directory(temporary)

    with ExitStack() as on_failure:
        on_failure.callback(discard_all)
        yield temporary
        with recorder.record(rooted, "copy", describe):
            (check_and_rename if is_directory(old) else rename_to_unused)(temporary, new)
        on_failure.pop_all()


def copy(
    rooted: RootedFiles,
    source: Place,
    destination: Place,
    checkpoint: Callable[[], None] = lambda: None,
    etag: str | None = None,
    recorder: Recorder = NOT_RECORDED,
) -> CopyResult:
    """Copy the entry at `source` to `destination`, which must not exist. With `etag`, copy it only if the source's
    etag still matches.

    Raises FilesError with code `already_exists`, `too_large`, `special_file`, or `bad_path` for a directory that
    would contain its own copy. `checkpoint` may raise at any time. A partial copy is always deleted. A single file is
    synced to disk; the files of a directory get there when the system writes them.
    """
    rooted.roots.require_writable(destination)
    with rooted.locate(source, follow=False) as old:
        if old.stat is None:
            raise missing_error(old, source.path)
        require_same(old.stat, etag, source.path)
        if not is_directory(old):
            require_file_name(source)
            require_file_name(destination)
        with rooted.locate(destination, follow=False) as new, lock_entries(new):
            rooted.roots.require_writable(new.place)
            require_free(stat_entry(new), destination.path, old.place)
            require_new_name(rooted, new.place)
            _require_outside(rooted, old, new, source.path)
            copy_run = _Copy(rooted, source.path, checkpoint)
            copy_run.is_recorded = recorder.is_on
            with _temporary_copy(rooted, old, new, recorder, copy_run.describe) as temporary:
                copy_run.copy(old, temporary, 1)
            sync_directory(new)
    return CopyResult(copy_run.bounds.entries, copy_run.size, list(copy_run.lost))


class _Copy:
    """A copy in progress: its limits, how much has been copied, and the metadata that could not be kept."""

    def __init__(self, rooted: RootedFiles, path: str, checkpoint: Callable[[], None], is_move: bool = False) -> None:
        """Begin a copy. With `is_move`, it keeps the times of its source, and all its files are synced to disk."""
        self.bounds = Bounds(rooted, path, checkpoint=checkpoint)
        self.size = 0
        self.lost: dict[str, None] = {}
        self._rooted = rooted
        self._path = path
        self._checkpoint = checkpoint
        self._is_move = is_move
        self._marks: dict[tuple[str, ...], Mark] = {}
        self.is_recorded = False
        """True if the created entries are to be recorded."""
        self._created: list[tuple[Place, State]] = []

    def describe(self, survey: Survey) -> None:
        """Record the created entries, a directory before its contents."""
        for place, state in self._created:
            survey.record_creation(self._rooted.roots.path(place), state)

    def copy(self, old: Entry, new: Entry, depth: int) -> None:
        """Copy a file, a link, or a directory with its contents."""
        self.bounds.count(old)
        self._rooted.roots.require_allowed(new.place)
        if old.stat is None:
            raise missing_error(old, self._path)
        mode = old.stat.st_mode
        if self._is_move:
            self._marks[old.place.parts] = _mark(old.stat)
        if stat.S_ISDIR(mode):
            self._copy_directory(old, new, depth)
        elif stat.S_ISLNK(mode):
            target = copy_link(old, new)
            self._record(new, State("link", target))
            self.lost |= dict.fromkeys(set_link_owner(new, old.stat))
        elif stat.S_ISREG(mode):
            self._copy_file(old, new, durable=depth == 1 or self._is_move)
        else:
            shown = quote_name(old.place.parts[-1])
            raise FilesError("special_file", self._path, f"{shown} is neither a file, nor a directory, nor a link")

    def require_unchanged(self, old: Entry) -> None:
        """Raise FilesError with code `changed` if `old` or its contents have changed since they were copied."""
        now = stat_entry(old)
        marks = {} if now is None else {old.place.parts: _mark(now)}
        if now is not None and is_directory(old):
            collector = _MarkCollector(self._rooted, self._path, now.st_dev, self._checkpoint)
            empty(old, collector, remove=False)
            marks |= collector.marks
        if marks != self._marks:
            raise FilesError(
                "changed", self._path, "has been changed by another program in the meantime", "Try again."
            )

    def _copy_directory(self, old: Entry, new: Entry, depth: int) -> None:
        with ExitStack() as stack:
            with os_errors(self._path):
                source = stack.enter_context(enter_directory(old))
            status = stat_of(old, source)
            self.bounds.require_enterable(status, depth)
            # The owner needs permission to write into the copy. The final mode and the other metadata are set at the
            # end, if the system gives directories a descriptor.
            mode = stat.S_IMODE(status.st_mode) & 0o777 if source is None else initial_mode(status)
            make_directory(new, mode | stat.S_IRWXU)
            self._record(new, DIRECTORY)
            target = stack.enter_context(enter_directory(new))
            for name, entry in children(old, source):
                self.copy(entry, child(new, target, name), depth + 1)
            if target is not None and source is not None:
                self._set_metadata(target, status, attributes_of(source))
                if self._is_move:
                    sync(target)

    def _copy_file(self, old: Entry, new: Entry, durable: bool) -> None:
        with os_errors(self._path):
            handle = self._rooted.open_entry(old, self._path)
        try:
            self._count_bytes(handle.stat.st_size, 0)
            target = create(new, initial_mode(handle.stat))
            try:
                self._record(new, self._copy_bytes(handle, target))
                self._set_metadata(target, handle.stat, attributes_of(handle.descriptor))
                if durable:
                    sync(target)
            finally:
                os.close(target)
        finally:
            os.close(handle.descriptor)

    def _copy_bytes(self, handle: Handle, target: int) -> State:
        """Copy the bytes and return the state of the copy, without a digest if none is needed."""
        # A file that occupies fewer bytes than its size, as disk images do, has holes: its copy should be sparse too.
        # On Windows a status has no `st_blocks`, so no file seems to have holes.
        has_holes = getattr(handle.stat, "st_blocks", math.inf) * 512 < handle.stat.st_size
        digest, begin = new_digest(), self.size
        while block := os.read(handle.descriptor, _BLOCK_BYTES):
            self._checkpoint()
            self._count_bytes(0, len(block))
            if self.is_recorded:
                digest.update(block)
            if has_holes and block == bytes(len(block)):
                os.ftruncate(target, os.lseek(target, len(block), os.SEEK_CUR))
            else:
                write_all(target, block)
        return State("file", digest.hexdigest(), self.size - begin)

    def _record(self, new: Entry, state: State) -> None:
        if self.is_recorded:
            self._created.append((new.place, state))

    def _set_metadata(self, target: int, status: os.stat_result, attributes: Attributes) -> None:
        """Set the metadata of the copy, which is open as the descriptor `target`."""
        self.lost |= dict.fromkeys(set_metadata(target, status, attributes))
        if self._is_move:
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _count_bytes(self, expected: int, copied: int) -> None:
        self.size += copied
        if self.size + expected > MAX_COPIED:
            raise FilesError("too_large", self._path, f"contains more than {MAX_COPIED:,} bytes")


class _MarkCollector(Bounds):
    """Bounds that also record the mark of each entry that a walk counts."""

    def __init__(self, rooted: RootedFiles, path: str, device: int, checkpoint: Callable[[], None]) -> None:
        super().__init__(rooted, path, device, checkpoint)
        self.marks: dict[tuple[str, ...], Mark] = {}

    def count(self, entry: Entry) -> None:
        """Count an entry and record its mark."""
        super().count(entry)
        if entry.stat is not None:
            self.marks[entry.place.parts] = _mark(entry.stat)


def _mark(status: os.stat_result) -> Mark:
    """Return a value that differs after the entry has been changed, but not after it has only been read."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

"""Deleting: a file, a link itself, a directory.

Like `rm`, this needs permission on the directory and not on what is deleted. A directory that is not empty is gone
through twice: first to see that everything in it may go, then to delete it. So what is refused, too large or
cancelled loses nothing.
"""

import errno
from collections.abc import Callable

from servers.filesystem.errors import FilesError
from servers.filesystem.writing.checks import require_file_name, require_same
from servers.filesystem.writing.trees import Bounds, children, is_directory, stat_of
from shared.kit.rooted.atomic import sync_directory
from shared.kit.rooted.entries import Entry, Place, current, opened, remove_directory, unlink
from shared.kit.rooted.files import RootedFiles, missing
from shared.kit.rooted.locks import locked


def delete(
    beneath: RootedFiles,
    place: Place,
    recursive: bool = False,
    etag: str | None = None,
    checkpoint: Callable[[], None] = lambda: None,
) -> int:
    """Delete what is at `place`, and tell how many entries that were; with `etag`, only while it still has that.

    A directory that is not empty needs `recursive`. Raises `not_empty`, `changed`, `too_large`, `denied` and
    `cross_device` for what it holds, and `bad_path` for what is an allowed directory or holds one. `checkpoint` may
    raise as long as nothing is deleted.
    """
    roots = beneath.roots
    roots.require_writable(place)
    roots.require_movable(place)
    with beneath.locate(place, follow=False) as named, locked(named):
        roots.require_writable(named.place)
        roots.require_movable(named.place)
        entry = named._replace(stat=current(named))
        if entry.stat is None:
            raise missing(entry, place.written)
        require_same(entry.stat, etag, place.written)
        count = 1
        if is_directory(entry):
            if recursive:
                count += _delete_below(beneath, entry, place.written, checkpoint)
            _remove_directory(entry, place.written)
        else:
            require_file_name(place)
            unlink(entry)
        sync_directory(entry)
    return count


def empty(entry: Entry, bounds: Bounds, depth: int = 1, remove: bool = True) -> None:
    """Remove everything that is in the directory `entry`, links as links; without `remove`, only count it."""
    with opened(entry) as directory:
        bounds.enter(stat_of(entry, directory), depth)
        for _, child in children(entry, directory):
            bounds.count(child)
            if is_directory(child):
                empty(child, bounds, depth + 1, remove)
            if remove:
                (remove_directory if is_directory(child) else unlink)(child)


def _delete_below(beneath: RootedFiles, entry: Entry, written: str, checkpoint: Callable[[], None]) -> int:
    device = None if entry.stat is None else entry.stat.st_dev
    survey = Bounds(beneath, written, device, checkpoint)
    empty(entry, survey, remove=False)
    # From here on it goes to the end, however long the caller waits.
    empty(entry, Bounds(beneath, written, device))
    return survey.entries


def _remove_directory(entry: Entry, written: str) -> None:
    try:
        remove_directory(entry)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        suggestion = "With recursive: true it is deleted with all it holds."
        raise FilesError("not_empty", written, "is a directory that is not empty", suggestion) from None

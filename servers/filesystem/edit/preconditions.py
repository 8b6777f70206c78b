"""Conditions for a change: the path names a file that can be replaced and is unchanged since it was read."""

import os
import stat

from servers.common.files.rooted_files import missing_error, require_regular
from servers.filesystem.errors import FilesError
from shared.program.files.entries import Entry, Place, etag_of, is_writable


def require_file_name(place: Place) -> None:
    """Raise `bad_path` if the path ends like the path of a directory."""
    end = place.path.replace("\\", "/") if os.sep == "\\" else place.path
    if end.endswith(("/", "/.", "/..")):
        raise FilesError(
            "bad_path", place.path, "ends with a slash, but only the path of a directory can", "Omit the slash."
        )


def require_same(status: os.stat_result | None, etag: str | None, path: str) -> None:
    """Raise `changed` if an `etag` is given and the file with this `status` has another."""
    if etag is None:
        return
    if status is None:
        raise FilesError(
            "changed", path, "has been deleted by another program in the meantime", "List its directory."
        )
    if etag_of(status) != etag:
        reason = f"has been changed by another program in the meantime; its etag is now {etag_of(status)}"
        raise FilesError("changed", path, reason, "Read it again.")


def require_free(status: os.stat_result | None, path: str) -> None:
    """Raise `already_exists` unless `status` is None."""
    if status is not None:
        raise FilesError("already_exists", path, "already exists", "Choose another name.")


def require_replaceable(entry: Entry, status: os.stat_result | None, path: str, protected: bool) -> None:
    """Raise unless the entry can be written: it does not exist, or is a regular, writable file with one name.

    With `protected`, it may be any regular file.
    """
    if status is None:
        if entry.linked:
            raise missing_error(entry, path)
        return
    require_regular(status.st_mode, path)
    if protected:
        return
    if not status.st_mode & stat.S_IWUSR:
        raise FilesError("read_only", path, "is write-protected", "Ask the user to change its permissions.")
    if status.st_nlink > 1:
        reason = f"has {status.st_nlink} hard links; replacing it would separate them"
        raise FilesError("hard_links", path, reason, "Write to another file.")
    if not is_writable(entry):
        raise FilesError("permission_denied", path, "the operating system denies access")

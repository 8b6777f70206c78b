"""What has to hold before a file is changed: a file is meant, still the one that was read, and it can be replaced."""

import os
import stat

from servers.common.files.rooted_files import missing, require_regular
from servers.filesystem.errors import FilesError
from shared.program.files.entries import Entry, Place, etag_of, is_writable


def require_file_name(place: Place) -> None:
    """Raise `bad_path` where the path ends as only that of a directory does, and a file is meant."""
    end = place.written.replace("\\", "/") if os.sep == "\\" else place.written
    if end.endswith(("/", "/.", "/..")):
        raise FilesError("bad_path", place.written, "ends as only a directory does", "Leave the slash out.")


def require_same(found: os.stat_result | None, etag: str | None, written: str) -> None:
    """Raise `changed` unless what was found has `etag`, where one is given."""
    if etag is None:
        return
    if found is None:
        raise FilesError("changed", written, "was deleted by someone else meanwhile", "List its directory.")
    if etag_of(found) != etag:
        reason = f"was changed by someone else meanwhile; its etag is {etag_of(found)} now"
        raise FilesError("changed", written, reason, "Read it again.")


def require_free(found: os.stat_result | None, written: str) -> None:
    """Raise `already_exists` where anything was found."""
    if found is not None:
        raise FilesError("already_exists", written, "already exists", "Choose another name.")


def require_replaceable(entry: Entry, found: os.stat_result | None, written: str, protected: bool) -> None:
    """Raise unless the entry can be written: a new name, or a regular, writable file with one name.

    With `protected`, any regular file can be.
    """
    if found is None:
        if entry.linked:
            raise missing(entry, written)
        return
    require_regular(found.st_mode, written)
    if protected:
        return
    if not found.st_mode & stat.S_IWUSR:
        raise FilesError("read_only", written, "is write-protected", "Ask the user to change its permissions.")
    if found.st_nlink > 1:
        reason = f"has {found.st_nlink} hard links; replacing it would separate them"
        raise FilesError("hard_links", written, reason, "Write to another name.")
    if not is_writable(entry):
        raise FilesError("permission_denied", written, "the operating system denies access")

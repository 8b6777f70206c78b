"""Checks before a change, for example that the file can be replaced and is unchanged since it was read."""

import os
import re
import stat
from contextlib import suppress
from itertools import islice

from servers.common.files.names import compose
from servers.common.files.rooted_files import RootedFiles, missing_error, require_regular
from shared.program.files.entries import Entry, Place, etag_of, is_writable
from shared.program.files.system import SYSTEM
from shared.text import quote_name

from ..errors import FilesError

_UNWANTED = re.compile(r"\A\s|\s\Z|[\x00-\x1f\x7f\\]|\A([\"'`]).*\1\Z")
"""What no new name may have: it comes from a path in another notation."""
_MAX_NAMES = 10_000
"""Maximum number of names in a directory that are compared with a new one."""


def require_file_name(place: Place) -> None:
    """Raise FilesError with code `bad_path` if the path ends like the path of a directory."""
    end = place.path.replace("\\", "/") if os.sep == "\\" else place.path
    if end.endswith(("/", "/.", "/..")):
        raise FilesError(
            "bad_path", place.path, "ends with a slash, but only the path of a directory can", "Omit the slash."
        )


def require_same(status: os.stat_result | None, etag: str | None, path: str) -> None:
    """Raise FilesError with code `changed` if an `etag` is given and the file with this `status` has another one."""
    if etag is None:
        return
    if status is None:
        raise FilesError(
            "changed", path, "has been deleted by another program in the meantime", "List its directory."
        )
    if etag_of(status) != etag:
        reason = f"has been changed by another program in the meantime; its etag is now {etag_of(status)}"
        raise FilesError("changed", path, reason, "Read it again.")


def require_free(status: os.stat_result | None, path: str, source: Place | None = None) -> None:
    """Raise FilesError with code `already_exists` unless `status`, that of the entry at `path`, is None. If the entry
    is a directory, the error says how to put `source` into it."""
    if status is None:
        return
    if source is not None and source.parts and stat.S_ISDIR(status.st_mode):
        suggestion = f"To put it in there, add {quote_name('/' + source.parts[-1])} to the path."
        raise FilesError("already_exists", path, "already exists and is a directory", suggestion)
    raise FilesError("already_exists", path, "already exists", "Choose another name.")


def require_new_name(rooted: RootedFiles, new: Place, source: Place | None = None) -> None:
    """Require that an entry with the name of `new`, which does not exist, may be created. `source` is the entry that
    is being renamed to it, if any.

    Raises FilesError with code `bad_path` for a name with a backslash, a control character, or quotes or white space
    around it, unless `source` already has that name: some models send a line break after a path
    (anomalyco/opencode#43112), and some hosts the separators of Windows (microsoft/vscode#289166). Raises FilesError
    with code `already_exists` if the directory contains an entry other than `source` whose name differs only in how
    accents are composed in Unicode: macOS decomposes accents and models compose them, so a second file would be
    created that looks like the first.
    """
    if not new.parts:
        return
    if _UNWANTED.search(new.parts[-1]) and (source is None or source.parts[-1:] != new.parts[-1:]):
        reason = "the new name has a backslash, a control character, or quotes or white space around it"
        raise FilesError("bad_path", new.path, reason, "Write the plain name, with / between directories.")
    if new.parts[-1].isascii():
        return
    directory, name = new._replace(parts=new.parts[:-1]), compose(new.parts[-1])
    same: list[Place] = []
    with suppress(FilesError), rooted.open_directory(directory) as opened, SYSTEM.scan(opened) as entries:
        names = (entry.name for entry in islice(entries, _MAX_NAMES))
        same = [directory.child(other) for other in names if not other.isascii() and compose(other) == name]
    for other in same:
        is_source = source is not None and (source.root_index, source.parts) == (other.root_index, other.parts)
        if not is_source and not rooted.roots.denies(other):
            reason = "already exists under a name whose accents are composed differently"
            raise FilesError("already_exists", new.path, reason, f"Use {rooted.roots.uri(other)}.")


def require_replaceable(entry: Entry, status: os.stat_result | None, path: str, protected: bool) -> None:
    """Raise FilesError unless the entry can be written: it does not exist, or is a regular, writable file without
    other hard links. With `protected`, a regular file may also be write-protected or have other hard links.
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

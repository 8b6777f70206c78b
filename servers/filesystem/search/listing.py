"""Directory listings, file descriptions, and path completion. Links are never followed.

A directory is opened below its root and read through its descriptor. Entries are examined with `lstat`, so a link is
listed as a link, without revealing the size or existence of its target. Names are shown on one line (see `names`),
and an entry's URI has the exact bytes of its name.
"""

import os
import stat
from collections.abc import Set
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from servers.common.files.rooted_files import RootedFiles, missing_error
from shared.program.files.entries import Place, etag_of, kind_of, list_entries
from shared.text import display_name, format_count

from ..errors import FilesError
from ..names import add_uri
from ..read.media_types import media_type_of
from .page import ByteBudget, Page, Position, decode_cursor, encode_cursor

_OVERHEAD_BYTES = 10
"""Size in bytes of an entry's line without its name and size."""
_FILE_SCHEME = "file:///"


class ListedEntry(NamedTuple):
    """One entry: its displayed `name`; its `kind`: file, directory, symlink or other; the `size` of a file in bytes;
    and `modified` in seconds since 1970.

    Size and time are None if they were not requested, could not be read or have no meaning, and for denied entries,
    whose properties must not be revealed.
    """

    name: str
    kind: str
    size: int | None
    modified: float | None
    directory_uri: str
    file_name: str

    @property
    def uri(self) -> str:
        """The URI of the entry, with the exact bytes of its name."""
        return f"{self.directory_uri}/{quote(os.fsencode(self.file_name))}"

    @property
    def shown_name(self) -> str:
        """The name as a result displays it."""
        return add_uri(self.name, lambda: self.uri)


class Listing(NamedTuple):
    """Some entries of a directory, and their total number. If `truncated`, `cursor` continues after the last one."""

    entries: tuple[ListedEntry, ...]
    total: int
    truncated: bool
    cursor: str | None = None


class FileInfo(NamedTuple):
    """The metadata of an entry; times are in seconds since 1970, None if unknown.

    `path` is as displayed in a result; `etag` differs whenever the file has changed.
    """

    path: str
    kind: str
    size: int
    created: float | None
    modified: float
    accessed: float
    permissions: str
    mime: str | None
    etag: str


def list_directory(
    rooted: RootedFiles, place: Place, page: Page, by_size: bool = False, names_only: bool = False
) -> Listing:
    """Return a page of the directory at `place`, sorted by name, or by size, largest first. Raises FilesError.

    With `names_only`, sizes and times are None, since they need a system call for each entry.
    """
    with rooted.open_directory(place) as directory:
        return page_of(list_entries(directory), rooted, place, page, by_size, names_only)


def page_of(
    children: "list[os.DirEntry[str]]",
    rooted: RootedFiles,
    place: Place,
    page: Page,
    by_size: bool = False,
    names_only: bool = False,
) -> Listing:
    """Return a page of `children`, the entries of the directory at `place`, which is open, like `list_directory`."""
    after = None if page.cursor is None else decode_cursor(page.cursor)
    denied = {entry.name for entry in children if rooted.roots.denies(place.child(entry.name))}
    rest = children
    if by_size:
        # The largest first; entries of equal size by name.
        keyed = sorted(((-_size(entry, denied), entry.name), entry) for entry in children)
        rest = [entry for key, entry in keyed if after is None or key > (-after.number, after.parts[0])]
    elif after is not None:
        rest = [entry for entry in children if entry.name > after.parts[0]]
    budget, entries, last = ByteBudget(page.max_bytes), [], after
    uri = rooted.roots.uri(place).rstrip("/")
    for entry in rest[: page.limit]:
        listed = _describe_child(uri, entry, not names_only and entry.name not in denied)
        size = "" if listed.size is None else f"  {format_count(listed.size, 'byte')}"
        if not budget.take(_OVERHEAD_BYTES, listed.shown_name + size):
            break
        entries.append(listed)
        last = Position((entry.name,), _size(entry, denied) if by_size else 0)
    more = len(entries) < len(rest)
    return Listing(tuple(entries), len(children), more, encode_cursor(last) if more and last else None)


def _size(entry: "os.DirEntry[str]", denied: Set[str]) -> int:
    """Return the size of a file; 0 for other entries, and for denied files."""
    if entry.name in denied:
        return 0
    try:
        return entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else 0
    except OSError:
        return 0


def _describe_child(directory_uri: str, entry: "os.DirEntry[str]", with_stat: bool) -> ListedEntry:
    kind, name = kind_of(entry), display_name(entry.name)
    try:
        status = entry.stat(follow_symlinks=False) if with_stat else None
    except OSError:
        status = None
    if status is None:
        return ListedEntry(name, kind, None, None, directory_uri, entry.name)
    size = status.st_size if kind == "file" else None
    return ListedEntry(name, kind, size, status.st_mtime, directory_uri, entry.name)


def info(rooted: RootedFiles, place: Place) -> FileInfo:
    """Return the description of the entry at `place`; for a link, of the link itself."""
    with rooted.locate(place, follow=False) as entry:
        if entry.stat is None:
            raise missing_error(entry, place.path)
        return describe(rooted, place, entry.stat)


def describe(rooted: RootedFiles, place: Place, status: os.stat_result) -> FileInfo:
    """Return the description of the entry at `place`, which has this status."""
    if stat.S_ISLNK(status.st_mode):
        kind = "symlink"
    elif stat.S_ISDIR(status.st_mode):
        kind = "directory"
    else:
        kind = "file" if stat.S_ISREG(status.st_mode) else "other"
    path = rooted.roots.path(place)
    return FileInfo(
        path=add_uri(display_name(path), lambda: rooted.roots.uri(place)),
        kind=kind,
        size=status.st_size,
        created=getattr(status, "st_birthtime", None),
        modified=status.st_mtime,
        accessed=status.st_atime,
        permissions=stat.filemode(status.st_mode),
        mime=media_type_of(path) if kind == "file" else None,
        etag=etag_of(status),
    )


def complete(rooted: RootedFiles, typed: str) -> list[str]:
    """Return the paths that begin with the typed text, in the form in which they follow `file:///` in a URI: the
    allowed directories, then the entries of the directory in the typed text.

    A directory ends in a slash. The list is empty for a path that is missing or outside the roots.
    """
    typed = typed.lstrip("/")
    prefix = unquote_to_bytes(typed)
    roots = [rooted.roots.uri(Place(index, (), "")) for index in range(len(rooted.roots.paths))]
    paths = [f"{uri.removeprefix(_FILE_SCHEME)}/" for uri in roots]
    matches = [path for path in paths if unquote_to_bytes(path).startswith(prefix)]
    parent, slash, name = typed.rpartition("/")
    if not slash:
        return matches
    with suppress(FilesError):
        parent_place = rooted.roots.place(f"{_FILE_SCHEME}{parent}")
        with rooted.open_directory(parent_place) as directory:
            prefix = unquote_to_bytes(name)
            children = [entry for entry in list_entries(directory) if os.fsencode(entry.name).startswith(prefix)]
            places = [(parent_place.child(entry.name), kind_of(entry)) for entry in children]
            matches += (
                f"{rooted.roots.uri(place).removeprefix(_FILE_SCHEME)}{'/' if kind == 'directory' else ''}"
                for place, kind in places
                if not rooted.roots.denies(place)
            )
    return matches

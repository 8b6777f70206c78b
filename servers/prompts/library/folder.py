"""A directory whose files are read without following a link and without leaving it.

A link, wherever it leads, is refused: what a library has lies in it.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from servers.common.files.directories import Directory, enter, entry_in, leave, open_directory, read_file
from servers.common.files.names import is_device
from servers.prompts.errors import PromptError
from servers.prompts.format.front_matter import MOST_BYTES
from shared.program.files.entries import current
from shared.program.files.system import SYSTEM

MOST_TOTAL = 64_000_000
"""Bytes of all files of prompts together."""

_DEEPEST = 16
_MOST_FILES = 50_000
"""Entries that are looked at, of one folder with all that it has."""

_IMPOSSIBLE = re.compile(r'[\x00-\x1f<>"|?*:\\]')

Signature = tuple[int, int, int]
"""Another one says that a file was written or replaced."""


class Entry(NamedTuple):
    """What is in a directory."""

    path: str
    """Within the folder, with / between names."""
    kind: str
    """file, directory, link or other."""
    signature: Signature | None
    """Of a file or a directory."""
    data: bytes | None = None
    """What is in the file, where that was asked for."""


class Folder:
    """The files of a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def read(self, path: str, most: int) -> bytes:
        """What is in the file. Raises PromptError where there is none, it is too large, or a link is on the way."""
        refusal = check_path(path)
        if refusal is not None:
            raise PromptError("not_found", f"{path[:200]!r} {refusal}")
        *above, name = path.split("/")
        try:
            with self.opened(above) as directory:
                data = read_file(entry_in(directory, name), most)
        except OSError:
            raise PromptError("not_found", f"there is no file {path[:200]!r}, or it can't be read") from None
        if data is None:
            raise PromptError("too_large", f"{path[:200]!r} has more than {most:,} bytes")
        return data

    def is_executable(self, path: str) -> bool:
        """Whether the owner of the file may execute it."""
        *above, name = path.split("/")
        try:
            with self.opened(above) as directory:
                found = current(entry_in(directory, name))
        except OSError:
            return False
        return found is not None and bool(found.st_mode & stat.S_IXUSR)

    def children(self, path: str) -> list[Entry]:
        """What is in a directory ("" is the folder itself), in order of names; nothing where there is none."""
        above = path.split("/") if path else []
        if path and check_path(path) is not None:
            return []
        try:
            with self.opened(above) as directory:
                return _list_children(directory, f"{path}/" if path else "")
        except OSError:
            return []

    def signature(self, path: str) -> Signature | None:
        """That of a file or a directory ("" is the folder itself), which an entry that comes or goes changes; None
        where there is none."""
        try:
            return _make_signature((self.root / path).stat())
        except OSError:
            return None

    def walk(self, enter: frozenset[str], known: Mapping[str, Signature]) -> Iterator[Entry]:
        """All that there is, a directory's files before its directories, and a directory that is entered before what
        is in it; other directories are left out. Markdown and TOML files come with their bytes, unless their
        signature is the `known` one, or they can't be read, or those before them had MOST_TOTAL bytes.

        Directories with a name like .x are passed over, but for those whose names are in `enter`. Raises OSError
        where the folder itself can't be read, and PromptError where it is too large.
        """
        with self.opened([]) as directory:
            left = _MOST_FILES
            for entry in _Walk(enter, known).entries(directory, ""):
                left -= 1
                if left < 0:
                    raise PromptError("too_large", f"the library has more than {_MOST_FILES:,} files")
                yield entry

    def opened(self, names: list[str], make: bool = False) -> AbstractContextManager[Directory]:
        """The directory at these names, held open; with `make`, those that are missing are made. Raises OSError."""
        return open_directory(self.root, names, make)


class _Walk:
    """A walk under way."""

    def __init__(self, enter: frozenset[str], known: Mapping[str, Signature]) -> None:
        self._enter = enter
        self._known = known
        self._left = MOST_TOTAL

    def entries(self, directory: Directory, above: str) -> Iterator[Entry]:
        """What is in an open directory, and below."""
        entries = _list_children(directory, above)
        for entry in entries:
            changed = entry.kind == "file" and self._known.get(entry.path) != entry.signature
            if changed and entry.path.endswith((".md", ".toml")):
                yield self._with_data(entry, directory)
            elif entry.kind != "directory":
                yield entry
        for entry in entries:
            name = entry.path.removeprefix(above)
            hidden = name.startswith(".") and name not in self._enter
            if entry.kind != "directory" or hidden or above.count("/") >= _DEEPEST:
                continue
            try:
                below = enter(directory, name)
            except OSError:  # it went away, or became a link
                continue
            try:
                yield entry
                yield from self.entries(below, f"{entry.path}/")
            finally:
                leave(below)

    def _with_data(self, entry: Entry, directory: Directory) -> Entry:
        if self._left < 0:
            return entry
        try:
            data = read_file(entry_in(directory, entry.path.rpartition("/")[2]), MOST_BYTES)
        except OSError:
            return entry
        self._left -= len(data or b"")
        return entry._replace(data=data)


def _list_children(directory: Directory, above: str) -> list[Entry]:
    found = []
    with SYSTEM.scan(directory) as entries:
        # One more than there may be, to be seen by whoever counts them.
        for one in islice(entries, _MOST_FILES + 1):
            try:
                found.append(_make_entry(one, above))
            except OSError:  # it went away
                continue
    return sorted(found)


def _make_entry(one: "os.DirEntry[str]", above: str) -> Entry:
    path = above + one.name
    if one.is_symlink():
        return Entry(path, "link", None)
    status = one.stat(follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        return Entry(path, "directory", _make_signature(status))
    return (
        Entry(path, "file", _make_signature(status)) if stat.S_ISREG(status.st_mode) else Entry(path, "other", None)
    )


def _make_signature(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_size, status.st_ino


def find_paths(folders: Sequence[Folder], typed: str) -> list[str]:
    """What stands in the folders and goes on as was typed: paths that begin at a folder; that of a directory ends in
    a slash."""
    above, slash, begun = typed.rpartition("/")
    if slash and not above:
        return []
    found = []
    for folder in folders:
        for entry in folder.children(above):
            name = entry.path.rpartition("/")[2]
            # What is hidden is suggested to those who ask for it.
            wanted = name.startswith(begun) and (begun or not name.startswith("."))
            if entry.kind in ("file", "directory") and wanted and name.isprintable():
                found.append(entry.path + ("/" if entry.kind == "directory" else ""))
    return sorted(found)


def check_path(path: str) -> str | None:
    """Why `path` is no path of a file within a library, on whatever system it is read; None where it is one."""
    names = path.split("/")
    if path.startswith("/"):
        return "is not a path within the library"
    if any(name in ("", ".", "..") for name in names):
        return "has an empty name, . or .. in it"
    if _IMPOSSIBLE.search(path):
        return "has a character that Windows has in no name; / stands between names"
    if any(name.endswith((".", " ")) or is_device(name) for name in names):
        return "has a name that Windows can't have"
    return None


def is_hidden(path: str) -> bool:
    """Whether a file or a directory on the way to it has a name like .x."""
    return any(name.startswith(".") and name.strip(".") for name in path.split("/"))

"""Reads the files of a directory without following links, so that nothing outside the directory is read."""

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
from shared.program.files.entries import stat_entry
from shared.program.files.system import SYSTEM

from ..errors import PromptError
from ..format.forms import is_manifest
from ..format.front_matter import MAX_FILE_BYTES

MAX_TOTAL_BYTES = 64_000_000
"""Maximum total size of all prompt files, in bytes."""

_MAX_DEPTH = 16
_MAX_FILES = 50_000
"""Maximum number of entries in a folder with all its subfolders."""

_PROMPT_FOLDERS = frozenset({"agents", "commands", "prompts", "skills"})
_FORBIDDEN_CHARACTERS = re.compile(r'[\x00-\x1f<>"|?*:\\]')

Signature = tuple[int, int, int]
"""The modification time, size and inode of a file. One of them changes when the file is written or replaced."""


class Entry(NamedTuple):
    """An entry of a directory."""

    path: str
    """The path in the folder, with / between names."""
    kind: str
    """file, directory, hidden directory, link or other."""
    signature: Signature | None
    """The signature of a file or a directory."""
    data: bytes | None = None
    """The content of the file, if `walk` has read it."""


class Folder:
    """Reads the files of a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def read(self, path: str, max_bytes: int) -> bytes:
        """Return the content of the file. Raises PromptError if the file does not exist, is too large, or has a link
        on its path."""
        refusal = check_path(path)
        if refusal is not None:
            raise PromptError("not_found", f"{path[:200]!r} {refusal}")
        *folders, name = path.split("/")
        try:
            with self.open(folders) as directory:
                data = read_file(entry_in(directory, name), max_bytes)
        except OSError:
            raise PromptError("not_found", f"there is no file {path[:200]!r}, or it can't be read") from None
        if data is None:
            raise PromptError("too_large", f"{path[:200]!r} has more than {max_bytes:,} bytes")
        return data

    def is_executable(self, path: str) -> bool:
        """Return True if the owner of the file may execute it."""
        *folders, name = path.split("/")
        try:
            with self.open(folders) as directory:
                status = stat_entry(entry_in(directory, name))
        except OSError:
            return False
        return status is not None and bool(status.st_mode & stat.S_IXUSR)

    def children(self, path: str) -> list[Entry]:
        """Return the entries of a directory ("" is the folder itself), sorted by name; an empty list if it can't be
        read."""
        folders = path.split("/") if path else []
        if path and check_path(path) is not None:
            return []
        try:
            with self.open(folders) as directory:
                return _list_children(directory, f"{path}/" if path else "")
        except OSError:
            return []

    def signature(self, path: str) -> Signature | None:
        """Return the signature of a file or a directory ("" is the folder itself); None if it does not exist. That of
        a directory changes when an entry is added or removed."""
        try:
            return _make_signature((self.root / path).stat())
        except OSError:
            return None

    def walk(self, hidden_folders: frozenset[str], cached: Mapping[str, Signature]) -> Iterator[Entry]:
        """Yield all entries: the files of a directory before its subdirectories, and a directory before its content.
        Directories that can't be entered are left out.

        The entry of a Markdown or TOML file contains its bytes, with these exceptions: a file of a skill other than
        SKILL.md, one that has the signature in `cached` or can't be read, and those after MAX_TOTAL_BYTES bytes.

        Directories whose names begin with a dot are skipped, except those in `hidden_folders`. If a skipped one seems
        to contain prompts, it is yielded as a hidden directory. Raises OSError if the folder itself can't be read,
        and PromptError if it has too many files.
        """
        with self.open([]) as directory:
            remaining = _MAX_FILES
            for entry in _Walk(hidden_folders, cached).entries(directory, ""):
                remaining -= 1
                if remaining < 0:
                    raise PromptError("too_large", f"the library has more than {_MAX_FILES:,} files")
                yield entry

    def open(self, names: list[str], make: bool = False) -> AbstractContextManager[Directory]:
        """Open the directory at the path with these names in the folder. With `make`, create missing directories.
        Raises OSError."""
        return open_directory(self.root, names, make)


class _Walk:
    """One walk through a folder. It reads at most MAX_TOTAL_BYTES bytes."""

    def __init__(self, hidden_folders: frozenset[str], cached: Mapping[str, Signature]) -> None:
        self._hidden_folders = hidden_folders
        self._cached = cached
        self._remaining_bytes = MAX_TOTAL_BYTES

    def entries(self, directory: Directory, prefix: str, in_skill: bool = False) -> Iterator[Entry]:
        """Yield the entries of an open directory, and those below it. Their paths begin with `prefix`."""
        entries = _list_children(directory, prefix)
        in_skill = in_skill or any(
            is_manifest(entry.path.removeprefix(prefix)) and entry.kind != "directory" for entry in entries
        )
        for entry in entries:
            name = entry.path.removeprefix(prefix)
            changed = entry.kind == "file" and self._cached.get(entry.path) != entry.signature
            # The other files of a skill are not prompts.
            if changed and (is_manifest(name) if in_skill else name.lower().endswith((".md", ".toml"))):
                yield self._read_data(entry, directory)
            elif entry.kind != "directory":
                yield entry
        for entry in entries:
            name = entry.path.removeprefix(prefix)
            if entry.kind != "directory" or prefix.count("/") >= _MAX_DEPTH:
                continue
            if name.startswith(".") and name not in self._hidden_folders:
                if _has_prompt_folders(directory, name):
                    yield Entry(entry.path, "hidden directory", None)
                continue
            try:
                subdirectory = enter(directory, name)
            except OSError:  # it was deleted, or became a link
                continue
            try:
                yield entry
                yield from self.entries(subdirectory, f"{entry.path}/", in_skill)
            finally:
                leave(subdirectory)

    def _read_data(self, entry: Entry, directory: Directory) -> Entry:
        if self._remaining_bytes < 0:
            return entry
        try:
            data = read_file(entry_in(directory, entry.path.rpartition("/")[2]), MAX_FILE_BYTES)
        except OSError:
            return entry
        self._remaining_bytes -= len(data or b"")
        return entry._replace(data=data)


def _has_prompt_folders(directory: Directory, name: str, levels: int = 2) -> bool:
    """Return True if the directory `name` contains a directory in which a host would look for prompts, at most
    `levels` levels deep."""
    try:
        inner = enter(directory, name)
    except OSError:
        return False
    try:
        subfolders = [entry.path for entry in _list_children(inner, "") if entry.kind == "directory"]
        return not _PROMPT_FOLDERS.isdisjoint(subfolders) or (
            levels > 1 and any(_has_prompt_folders(inner, subfolder, levels - 1) for subfolder in subfolders)
        )
    except OSError:
        return False
    finally:
        leave(inner)


def _list_children(directory: Directory, prefix: str) -> list[Entry]:
    children = []
    with SYSTEM.scan(directory) as entries:
        # Read one entry more than the limit, so that the caller detects that there are too many.
        for dir_entry in islice(entries, _MAX_FILES + 1):
            try:
                children.append(_make_entry(dir_entry, prefix))
            except OSError:  # it was deleted
                continue
    return sorted(children)


def _make_entry(dir_entry: "os.DirEntry[str]", prefix: str) -> Entry:
    path = prefix + dir_entry.name
    if dir_entry.is_symlink():
        return Entry(path, "link", None)
    status = dir_entry.stat(follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        return Entry(path, "directory", _make_signature(status))
    return (
        Entry(path, "file", _make_signature(status)) if stat.S_ISREG(status.st_mode) else Entry(path, "other", None)
    )


def _make_signature(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_size, status.st_ino


def find_paths(folders: Sequence[Folder], typed: str) -> list[str]:
    """Return the paths that begin with the typed text, relative to one of the folders. Those of directories end in a
    slash."""
    parent, slash, prefix = typed.rpartition("/")
    if slash and not parent:
        return []
    paths = []
    for folder in folders:
        for entry in folder.children(parent):
            name = entry.path.rpartition("/")[2]
            # Hidden entries are suggested only after a typed dot.
            matches = name.startswith(prefix) and (prefix or not name.startswith("."))
            if entry.kind in ("file", "directory") and matches and name.isprintable():
                paths.append(entry.path + ("/" if entry.kind == "directory" else ""))
    return sorted(paths)


def check_path(path: str) -> str | None:
    """Return the reason why `path` can't be the path of a file in a library on all systems; None if it can."""
    names = path.split("/")
    if path.startswith("/"):
        return "is not a path within the library"
    if any(name in ("", ".", "..") for name in names):
        return "has an empty name, . or .. in it"
    if _FORBIDDEN_CHARACTERS.search(path):
        return "has a character that Windows does not allow in names; names are separated by /"
    if any(name.endswith((".", " ")) or is_device(name) for name in names):
        return "has a name that Windows does not allow"
    return None


def is_hidden(path: str) -> bool:
    """Return True if the name of a file, or of a directory on its path, begins with a dot."""
    return any(name.startswith(".") and name.strip(".") for name in path.split("/"))

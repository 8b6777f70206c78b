"""Writes and deletes files in a folder atomically, without following links. It also writes skills: directories that
appear with all their files at once."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

from servers.common.files.directories import entry_in, read_file
from shared.program.files.atomic import (
    check_and_rename,
    prepare_replacement,
    put_in_place,
    sync_directory,
    temporary_name,
)
from shared.program.files.entries import Entry, remove_tree, stat_entry, unlink

from ..errors import PromptError
from ..format.forms import SKILL
from ..library.folder import Folder, check_path

_MAX_BYTES = 16_000_000
"""Maximum size of a file that is replaced, in bytes."""
_write_lock = Lock()
"""Held from the check of a file until the file has been replaced."""

Check = Callable[[bytes | None], None]
"""Called with the contents of the file, None if it does not exist. Raises an error if it must not be changed."""


def allow_any_contents(_existing: bytes | None) -> None:
    """Allow to change any file: a `Check` that never raises."""


def make_etag(data: bytes) -> str:
    """Return a hash that identifies the contents of a file: 16 hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def put(folder: Folder, path: str, data: bytes, check: Check, executable: bool = False) -> bool:
    """Call `check`, and write `data` to the file at `path` atomically. Return True if the file is new.

    Missing directories are created. An existing file keeps its mode. Raises PromptError with code `not_written` or
    `changed`, and the errors of `check`.
    """
    with _open_entry(folder, path, make=True) as entry:
        existing = _check_entry(entry, check)
        replacement = prepare_replacement(entry, data, existing, mode=0o777 if executable else 0o666)
        put_in_place(replacement, entry, existing)
        return existing is None


def check_file(folder: Folder, path: str, check: Check) -> None:
    """Call `check` for the file at `path` as `put` does, but do not change the file. Raises the same errors as
    `put`."""
    *folders, name = _split(path)
    with _write_lock, translate_os_errors(path):
        try:
            with folder.open(folders) as directory:
                _check_entry(entry_in(directory, name), check)
        except FileNotFoundError:
            check(None)


def delete(folder: Folder, path: str, check: Check) -> None:
    """Call `check`, and delete the file at `path`. Raises the same errors as `put`."""
    with _open_entry(folder, path) as entry:
        _check_entry(entry, check)
        unlink(entry)
        sync_directory(entry)


@contextmanager
def _open_entry(folder: Folder, path: str, make: bool = False) -> Iterator[Entry]:
    """Yield the entry of the file at `path`, in its directory. Raises PromptError."""
    *folders, name = _split(path)
    with _write_lock, translate_os_errors(path), folder.open(folders, make) as directory:
        yield entry_in(directory, name)


def _split(path: str) -> list[str]:
    """Split the path of a file into names. Raises PromptError."""
    refusal = check_path(path)
    if refusal is not None:
        raise PromptError("not_written", f"{path[:200]!r} {refusal}")
    return path.split("/")


@contextmanager
def translate_os_errors(path: str) -> Iterator[None]:
    """Convert an OSError in the block to a PromptError about `path`."""
    try:
        yield
    except FileExistsError:
        raise PromptError(
            "changed", f"{path[:200]!r} has been created by another program in the meantime", "Try again."
        ) from None
    except OSError as error:
        # Don't use the error's own text, since it contains paths of this machine.
        reason = os.strerror(error.errno) if error.errno else "input or output failed"
        what = "the path goes through a link, which is not followed" if error.errno == errno.ELOOP else reason
        raise PromptError("not_written", f"{path[:200]!r}: {what}") from None


def _check_entry(entry: Entry, check: Check) -> os.stat_result | None:
    """Call `check`, and return the status of the file; None if it does not exist. Raises PromptError for an entry
    that is not a file, or is write-protected."""
    status = stat_entry(entry)
    if status is None:
        check(None)
        return None
    if not stat.S_ISREG(status.st_mode):
        raise PromptError("not_written", f"{entry.place.path!r} is not a file, but a link or something else")
    if not status.st_mode & stat.S_IWUSR:
        raise PromptError("not_written", f"{entry.place.path!r} is write-protected")
    check(read_file(entry, _MAX_BYTES))
    return status


def find_differing(folder: Folder, name: str, files: Mapping[str, bytes]) -> list[str]:
    """Return the paths of those files of the skill `name` that exist in the folder with other contents."""
    existing = {path: data for path, data in files.items() if _exists(folder, name, path)}
    return [path for path, data in existing.items() if not _has_content(folder, name, path, data)]


def write_skill(folder: Folder, name: str, files: Mapping[str, bytes], scripts: Collection[str] = ()) -> bool:
    """Write a skill into the folder. The files in `scripts` are made executable. Return True if anything was written.

    If there is no directory with this name, it appears with all its files at once. If there is one, files that differ
    are replaced one by one, SKILL.md last, and other files stay. Raises PromptError with code `not_written` or
    `changed`.
    """
    if not _exists(folder, "", name):
        _write_new(folder, name, files, scripts)
        return True
    changed = [path for path, data in files.items() if not _has_content(folder, name, path, data)]
    for path in sorted(changed, key=lambda item: item == SKILL):
        put(folder, f"{name}/{path}", files[path], allow_any_contents, path in scripts)
    return bool(changed)


def _write_new(folder: Folder, name: str, files: Mapping[str, bytes], scripts: Collection[str]) -> None:
    """Write the files to a temporary directory, and rename it to `name`."""
    with translate_os_errors(name), folder.open([]) as directory:
        entry = entry_in(directory, name)
        temporary = temporary_name()
        replacement = entry_in(directory, temporary)
        try:
            for path, data in files.items():
                put(folder, f"{temporary}/{path}", data, allow_any_contents, path in scripts)
            check_and_rename(replacement, entry)
        except PromptError as error:
            raise PromptError(error.code, error.reason.replace(temporary, name)) from None
        finally:
            # After the rename, this does nothing.
            remove_tree(replacement)
        sync_directory(entry)


def _exists(folder: Folder, directory: str, path: str) -> bool:
    parent, _, name = f"{directory}/{path}".rpartition("/")
    return any(entry.path.rpartition("/")[2] == name for entry in folder.children(parent))


def _has_content(folder: Folder, name: str, path: str, data: bytes) -> bool:
    try:
        return folder.read(f"{name}/{path}", len(data)) == data
    except PromptError:
        return False

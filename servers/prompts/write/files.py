"""Files of a folder, written and deleted all or nothing, in directories held open and never through a link; and
skills, which are directories that appear with all their files at once.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

from servers.common.files.directories import entry_in, read_file
from servers.prompts.errors import PromptError
from servers.prompts.format.forms import SKILL
from servers.prompts.library.folder import Folder, check_path
from shared.program.files.atomic import fresh_name, prepared, put_in_place, rename_to_free, sync_directory
from shared.program.files.entries import Entry, current, remove_tree, unlink

_MOST_BYTES = 16_000_000
"""Of a file that is replaced."""
_one_at_a_time = Lock()
"""Held from the look at a file until it is replaced."""

Check = Callable[[bytes | None], None]
"""Gets what is in the file, None where there is none; raises where that shall stay as it is."""


def make_etag(data: bytes) -> str:
    """A mark of what a file has: 16 hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def put(folder: Folder, path: str, data: bytes, check: Check, executable: bool = False) -> bool:
    """Puts `data` into the file at `path` in one step, after a look at what it has; whether the file is new.

    Missing directories are made. A file that is there keeps its mode. Raises PromptError (`not_written`, `changed`),
    and what `check` raises.
    """
    with _open_entry(folder, path, make=True) as entry:
        found = _look_at(entry, check)
        fresh = prepared(entry, data, found, mode=0o777 if executable else 0o666)
        put_in_place(fresh, entry, found)
        return found is None


def look(folder: Folder, path: str, check: Check) -> None:
    """Has `check` see what is at `path`, as before a change of it. Raises as `put` does."""
    *above, name = _split(path)
    with _one_at_a_time, translate_os_errors(path):
        try:
            with folder.opened(above) as directory:
                _look_at(entry_in(directory, name), check)
        except FileNotFoundError:
            check(None)


def delete(folder: Folder, path: str, check: Check) -> None:
    """Deletes the file at `path`, after a look at what it has. Raises as `put` does."""
    with _open_entry(folder, path) as entry:
        _look_at(entry, check)
        unlink(entry)
        sync_directory(entry)


@contextmanager
def _open_entry(folder: Folder, path: str, make: bool = False) -> Iterator[Entry]:
    """The entry of the file at `path`, in its directory. Raises PromptError."""
    *above, name = _split(path)
    with _one_at_a_time, translate_os_errors(path), folder.opened(above, make) as directory:
        yield entry_in(directory, name)


def _split(path: str) -> list[str]:
    """The names in the path of a file. Raises PromptError."""
    refusal = check_path(path)
    if refusal is not None:
        raise PromptError("not_written", f"{path[:200]!r} {refusal}")
    return path.split("/")


@contextmanager
def translate_os_errors(path: str) -> Iterator[None]:
    """Makes a PromptError about `path` of each OSError."""
    try:
        yield
    except FileExistsError:
        raise PromptError("changed", f"somebody made {path[:200]!r} meanwhile", "Try again.") from None
    except OSError as error:
        # Not the error's own text, which has paths of the server.
        reason = os.strerror(error.errno) if error.errno else "input or output failed"
        what = "a link, which is not followed, is on the way" if error.errno == errno.ELOOP else reason
        raise PromptError("not_written", f"{path[:200]!r}: {what}") from None


def _look_at(entry: Entry, check: Check) -> os.stat_result | None:
    """What is there, which `check` has seen; None where nothing is. Raises PromptError for what is no file, or is
    write-protected."""
    found = current(entry)
    if found is None:
        check(None)
        return None
    if not stat.S_ISREG(found.st_mode):
        raise PromptError("not_written", f"{entry.place.written!r} is not a file, but a link or something else")
    if not found.st_mode & stat.S_IWUSR:
        raise PromptError("not_written", f"{entry.place.written!r} is write-protected")
    check(read_file(entry, _MOST_BYTES))
    return found


def find_differing(folder: Folder, name: str, files: Mapping[str, bytes]) -> list[str]:
    """Which of the files of the skill are in the folder with something else in them. Other files don't count."""
    there = {path: data for path, data in files.items() if _exists(folder, name, path)}
    return [path for path, data in there.items() if not _is_same(folder, name, path, data)]


def write_skill(folder: Folder, name: str, files: Mapping[str, bytes], scripts: Collection[str] = ()) -> bool:
    """Writes a skill into the folder, where `scripts` may be executed; whether anything was to be written.

    Where there is no directory of that name one appears with all files in it. Otherwise each file that differs is
    replaced in one step, SKILL.md as the last, and other files stay. Raises PromptError: `not_written`, `changed`.
    """
    if not _exists(folder, "", name):
        _write_new(folder, name, files, scripts)
        return True
    changed = [path for path, data in files.items() if not _is_same(folder, name, path, data)]
    for path in sorted(changed, key=lambda one: one == SKILL):
        put(folder, f"{name}/{path}", files[path], lambda _: None, path in scripts)
    return bool(changed)


def _write_new(folder: Folder, name: str, files: Mapping[str, bytes], scripts: Collection[str]) -> None:
    with translate_os_errors(name), folder.opened([]) as directory:
        entry = entry_in(directory, name)
        part = fresh_name()
        fresh = entry_in(directory, part)
        try:
            for path, data in files.items():
                put(folder, f"{part}/{path}", data, lambda _: None, path in scripts)
            rename_to_free(fresh, entry)
        except PromptError as error:
            raise PromptError(error.code, error.reason.replace(part, name)) from None
        finally:
            # Where it has its name by now, nothing is left to take away.
            remove_tree(fresh)
        sync_directory(entry)


def _exists(folder: Folder, above: str, path: str) -> bool:
    parent, _, name = f"{above}/{path}".rpartition("/")
    return any(one.path.rpartition("/")[2] == name for one in folder.children(parent))


def _is_same(folder: Folder, name: str, path: str, data: bytes) -> bool:
    try:
        return folder.read(f"{name}/{path}", len(data)) == data
    except PromptError:
        return False

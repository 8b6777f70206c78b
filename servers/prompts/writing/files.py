"""Files of a folder, written and deleted all or nothing, in directories held open and never through a link."""

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock

from servers.prompts.errors import PromptError
from servers.prompts.format.naming import path_refusal
from servers.prompts.library.folder import Folder, read_in

__all__ = ["Check", "delete", "etag_of", "os_errors", "put", "temporary"]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_MOST_BYTES = 16_000_000
"""Of a file that is replaced."""
_one_at_a_time = Lock()
"""Held from the look at a file until it is replaced."""

Check = Callable[[bytes | None], None]
"""Gets what is in the file, None where there is none; raises where that shall stay as it is."""


def etag_of(data: bytes) -> str:
    """A mark of what a file has: 16 hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def temporary() -> str:
    """A fresh name for what is not complete yet. A library passes such files over."""
    return f".mcp-{secrets.token_hex(8)}.tmp"


def put(folder: Folder, path: str, data: bytes, check: Check, executable: bool = False) -> bool:
    """Puts `data` into the file at `path` in one step, after a look at what it has; whether the file is new.

    Missing directories are made. A file that is there keeps its mode. Raises PromptError (`not_written`, `changed`),
    and what `check` raises.
    """
    with _opened(folder, path, make=True) as (directory, name):
        found = _status(directory, name)
        check(None if found is None else read_in(name, directory, _MOST_BYTES))
        fresh = temporary()
        try:
            _write(directory, fresh, data, 0o777 if executable else 0o666, found)
            if found is None:
                _give_name(directory, fresh, name)
            else:
                os.replace(fresh, name, src_dir_fd=directory, dst_dir_fd=directory)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=directory)
        os.fsync(directory)
        return found is None


def delete(folder: Folder, path: str, check: Check) -> None:
    """Deletes the file at `path`, after a look at what it has. Raises as `put` does."""
    with _opened(folder, path) as (directory, name):
        found = _status(directory, name)
        check(None if found is None else read_in(name, directory, _MOST_BYTES))
        os.unlink(name, dir_fd=directory)
        os.fsync(directory)


@contextmanager
def _opened(folder: Folder, path: str, make: bool = False) -> Iterator[tuple[int, str]]:
    """The directory of the file at `path`, and the name there. Raises PromptError."""
    refusal = path_refusal(path)
    if refusal is not None:
        raise PromptError("not_written", f"{path[:200]!r} {refusal}")
    *above, name = path.split("/")
    with _one_at_a_time, os_errors(path), folder.opened(above, make) as directory:
        yield directory, name


@contextmanager
def os_errors(path: str) -> Iterator[None]:
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


def _status(directory: int, name: str) -> os.stat_result | None:
    """What is there; None where nothing is. Raises PromptError for what is no file, or is write-protected."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise PromptError("not_written", f"{name!r} is no file, but a link or something else")
    if not found.st_mode & stat.S_IWUSR:
        raise PromptError("not_written", f"{name!r} is write-protected")
    return found


def _write(directory: int, name: str, data: bytes, mode: int, like: os.stat_result | None) -> None:
    # Private until it has the mode of what it replaces.
    descriptor = os.open(name, _NEW, mode if like is None else 0o600, dir_fd=directory)
    try:
        if like is not None:
            _take_over(descriptor, like)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _take_over(descriptor: int, like: os.stat_result) -> None:
    """Gives a file the mode and the group of the one it replaces."""
    mode = stat.S_IMODE(like.st_mode)
    if os.fstat(descriptor).st_gid != like.st_gid:
        try:
            os.fchown(descriptor, -1, like.st_gid)
        except PermissionError:
            # Another group must not read what only that one could.
            mode &= ~stat.S_IRWXG
    os.fchmod(descriptor, mode)


def _give_name(directory: int, fresh: str, name: str) -> None:
    """Names the file, where nothing has that name. Raises FileExistsError where something has.

    A rename would replace it. Where there are no hard links it is a rename all the same, after a second look.
    """
    try:
        os.link(fresh, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        if _status(directory, name) is not None:
            raise FileExistsError(errno.EEXIST, "") from None
        os.rename(fresh, name, src_dir_fd=directory, dst_dir_fd=directory)

"""Errors in the domain of a server, with a stable code.

They are separate from the errors of the protocol in `errors.py`: code that knows files or databases, but not the
protocol, raises only these.

`from_os_error` is the only place where an `OSError` becomes one of them. The text comes from the table below or from
the error number, never from the error's own message, because that may contain a resolved path that the caller must
not learn.
"""

import errno
import os
from contextlib import AbstractContextManager

from .text import quote_name

_RETRY = "Try again."
_BY_ERRNO: dict[int, tuple[str, str, str]] = {  # code, reason and suggestion
    errno.ENOENT: ("not_found", "does not exist", "List the parent directory to see what is there."),
    errno.ENOTDIR: ("not_a_directory", "a component of the path is not a directory", ""),
    errno.EISDIR: ("not_a_file", "is a directory", ""),
    errno.EEXIST: ("already_exists", "already exists", "Choose another name."),
    errno.ENOTEMPTY: ("already_exists", "already exists", "Choose another name."),
    errno.EACCES: ("permission_denied", "the operating system denies access", ""),
    errno.EPERM: ("permission_denied", "the operating system denies access", ""),
    errno.EROFS: ("read_only", "is on a read-only file system", ""),
    errno.ENAMETOOLONG: ("bad_path", "a name in the path is too long", ""),
    errno.EINVAL: ("bad_path", "the operating system refuses this path", ""),
    errno.EILSEQ: ("bad_path", "the file system does not support this name", ""),
    errno.ELOOP: ("changed", "was replaced while it was being opened", _RETRY),
    errno.ENXIO: ("special_file", "is not a regular file", ""),
    errno.ENODEV: ("special_file", "is not a regular file", ""),
    errno.EXDEV: ("cross_device", "source and destination are on different file systems", ""),
    errno.ENOSPC: ("no_space", "the disk is full", ""),
    errno.EMFILE: ("io_error", "too many files are open", _RETRY),
    errno.ENFILE: ("io_error", "too many files are open", _RETRY),
}


class MetadataError(OSError):
    """Attributes of a file can't be copied to another file; `what` lists them for a reader."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(errno.EPERM, f"{what} can't be preserved")


class CodedError(Exception):
    """A refusal or failure. Programs read the stable `code`, and people and models the `reason` and `suggestion`."""

    def __init__(self, code: str, reason: str, suggestion: str = "") -> None:
        self.code = code
        self.reason = reason
        self.suggestion = suggestion
        super().__init__(code, reason, suggestion)

    def __str__(self) -> str:
        return f"{self.reason}. {self.suggestion}" if self.suggestion else self.reason


class PathError(CodedError):
    """A refusal or failure, usually about a path.

    `path` is the path as the caller wrote it, never a resolved one.
    """

    def __init__(self, code: str, path: str, reason: str, suggestion: str = "") -> None:
        super().__init__(code, reason, suggestion)
        self.path = path

    def __str__(self) -> str:
        return f"{quote_name(self.path)}: {super().__str__()}" if self.path else super().__str__()


def from_os_error(path: str, error: OSError) -> PathError:
    """Return the `PathError` for `error`, with `path` as the caller wrote it."""
    if isinstance(error, MetadataError):
        return PathError("metadata", path, f"{error.what} can't be preserved", "Ask the user to change the file.")
    number = error.errno or 0
    entry = _BY_ERRNO.get(number)
    if entry is None:
        return PathError("io_error", path, os.strerror(number) if number else "input/output failed")
    code, reason, suggestion = entry
    return PathError(code, path, reason, suggestion)


class _OSErrors:
    """The context manager of `os_errors`. It is a class because a generator takes four times as long, and one edit of
    a file enters ten of these."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            raise from_os_error(self._path, error) from None


def os_errors(path: str) -> AbstractContextManager[None]:
    """Return a context manager that turns an `OSError` in its block into a `PathError` about `path`."""
    return _OSErrors(path)

"""Windows as `shared.kit.rooted.windows` knows it, over a directory of this system.

What it does as Windows does: names have no case, and keep theirs; nothing follows a link; what is open is renamed and
removed by its handle, wherever it is by then, and only where it was opened for that; a file with a short name answers
to it; and others may be in the way.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from shared.kit.rooted.windows import Access, Listed, SharingViolation

PASSED = getattr(os, "O_PATH", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class SimulatedWindows:
    """The next acts `in_the_way` fail, and of those on what is open already the next `at_the_end`. `short` has short
    names, and what they stand for."""

    def __init__(self) -> None:
        self.in_the_way = self.at_the_end = 0
        self.short: dict[str, str] = {}
        self.asked: list[str] = []
        """The names that were opened."""
        self._rights: dict[int, Access] = {}

    def open_root(self, path: str) -> int:
        descriptor = os.open(path, PASSED | os.O_DIRECTORY)
        self._rights[descriptor] = Access.PASS
        return descriptor

    def open_relative(self, directory: int, name: str, access: Access) -> int:
        descriptor = self._opened(directory, name, access)
        self._rights[descriptor] = access
        return descriptor

    def _opened(self, directory: int, name: str, access: Access) -> int:
        self.asked.append(name)
        self._may_fail()
        here = int(directory)
        if access in (Access.CREATE, Access.MAKE_DIRECTORY):
            return self._made(here, name, access)
        actual = self._actual(here, name)
        if actual is None:
            raise FileNotFoundError(errno.ENOENT, name)
        if access in (Access.LOOK, Access.PASS, Access.LINK, Access.MOVE):
            return os.open(actual, PASSED, dir_fd=here)
        flags = os.O_WRONLY | os.O_APPEND if access is Access.APPEND else os.O_RDONLY
        try:
            return os.open(actual, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            # A link can be opened itself, and has nothing to read.
            return os.open(actual, PASSED, dir_fd=here)

    def list(self, directory: int) -> list[Listed]:
        self._require(directory, Access.LIST)
        with os.scandir(_path(directory)) as entries:
            return [Listed(entry.name, entry.stat(follow_symlinks=False).st_mode) for entry in entries]

    def stat(self, descriptor: int) -> os.stat_result:
        return os.fstat(descriptor)

    def read_link(self, descriptor: int) -> str:
        return os.readlink("", dir_fd=int(descriptor))

    def rename(self, descriptor: int, directory: int, name: str, replace: bool) -> None:
        self._require(descriptor, Access.MOVE)
        self._may_fail_at_the_end()
        here, actual = int(directory), self._actual(directory, name)
        with _parent(descriptor) as (parent, own):
            if actual is None or self._is_same(descriptor, here, actual):
                os.rename(own, name, src_dir_fd=parent, dst_dir_fd=here)
                return
            if not replace:
                raise FileExistsError(errno.EEXIST, name)
            os.replace(own, actual, src_dir_fd=parent, dst_dir_fd=here)
            os.rename(actual, name, src_dir_fd=here, dst_dir_fd=here)

    def link(self, descriptor: int, directory: int, name: str) -> None:
        self._require(descriptor, Access.LINK)
        self._may_fail_at_the_end()
        if self._actual(directory, name) is not None:
            raise FileExistsError(errno.EEXIST, name)
        with _parent(descriptor) as (parent, own):
            os.link(own, name, src_dir_fd=parent, dst_dir_fd=int(directory), follow_symlinks=False)

    def remove(self, descriptor: int) -> None:
        self._require(descriptor, Access.MOVE)
        self._may_fail_at_the_end()
        is_directory = os.path.isdir(_path(descriptor)) and not os.path.islink(os.readlink(_path(descriptor)))
        with _parent(descriptor) as (parent, own):
            (os.rmdir if is_directory else os.unlink)(own, dir_fd=parent)

    def set_times(self, descriptor: int, nanoseconds: int) -> None:
        self._require(descriptor, Access.CREATE)
        os.utime(descriptor, ns=(nanoseconds, nanoseconds))

    def _require(self, descriptor: int, access: Access) -> None:
        if self._rights.get(int(descriptor)) is not access:
            raise PermissionError(errno.EACCES, f"it was not opened to {access.name}")

    def _made(self, here: int, name: str, access: Access) -> int:
        if self._actual(here, name) is not None:
            raise FileExistsError(errno.EEXIST, name)
        if access is Access.CREATE:
            return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=here)
        os.mkdir(name, dir_fd=here)
        return os.open(name, PASSED, dir_fd=here)

    def _actual(self, directory: int, name: str) -> str | None:
        """The name as the directory has it."""
        name = self.short.get(name.upper(), name)
        if name == ".":
            return name
        if len(name) > 255:
            raise OSError(errno.ENAMETOOLONG, name)
        names = os.listdir(_path(directory))
        return name if name in names else next((one for one in names if one.upper() == name.upper()), None)

    def _is_same(self, descriptor: int, directory: int, name: str) -> bool:
        return os.path.samestat(os.fstat(descriptor), os.stat(name, dir_fd=directory, follow_symlinks=False))

    def _may_fail(self) -> None:
        if self.in_the_way:
            self.in_the_way -= 1
            raise SharingViolation(errno.EACCES, "somebody has it open")

    def _may_fail_at_the_end(self) -> None:
        if self.at_the_end:
            self.at_the_end -= 1
            raise SharingViolation(errno.EACCES, "somebody has it open")


def refuse_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has `os.scandir` take paths only, as on Windows."""
    scandir: Any = os.scandir

    def by_path(path: Any = ".") -> Any:
        if isinstance(path, int):
            raise TypeError("scandir: path should be string, bytes, os.PathLike or None, not int")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", by_path)


def _path(descriptor: int) -> str:
    return f"/proc/self/fd/{int(descriptor)}"


@contextmanager
def _parent(descriptor: int) -> Iterator[tuple[int, str]]:
    """The directory that holds what is open, and its name there, by now."""
    path = os.readlink(_path(descriptor))
    # Paths may be longer than the system takes at once.
    here = os.open("/", PASSED)
    try:
        *directories, name = path.strip("/").split("/")
        for one in directories:
            there = os.open(one, PASSED, dir_fd=here)
            os.close(here)
            here = there
        yield here, name
    finally:
        os.close(here)

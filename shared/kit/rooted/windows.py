"""Walking to a place by handles, as Windows has them: the walk of `posix`, with the same promise.

A directory that was reached is held open, and the next name is opened relative to its handle. No open follows a
reparse point, such as a link or a junction: the walk reads what it says and goes there step by step. Everything is
opened so that others may read, write, rename and delete it meanwhile, as on POSIX. They need not be so kind, and
virus scanners are not: what is refused for their sake is tried again for a while.

A name can say more to Windows than to us: each one is checked (see `names`) where it is used, also those that links
lead to. One more rule needs a look. Windows gives a file a second, short name, such as `ENV~1` for `.env`, which
the denylist does not know: a name of that form counts only where the directory lists it.

**State: nobody is given this yet.** On Windows `checked` is the default until tests have passed there; so far they
run over a simulation (`tests/shared/kit/rooted/simulated.py`), and the native calls of `ntdll` have run nowhere.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar, cast

from shared.kit.rooted.names import is_short, refusal_of_name
from shared.kit.rooted.posix import DescriptorWalker
from shared.kit.rooted.roots import Roots
from shared.kit.rooted.system import Name, Opened, System

__all__ = ["Access", "HandleWalker", "Handles", "Listed", "Native", "SharingViolation"]

T = TypeVar("T")

_LONGEST = 255
"""Units of UTF-16 in a name. The kernel counts the bytes of one in 16 bits: far longer, it would be another."""
_ATTEMPTS = 8
"""How often an act is tried that others stand in the way of: for half a second in all."""


class SharingViolation(PermissionError):
    """Somebody has it open in a way that forbids this act, or it is about to go."""


class Access(Enum):
    """What something is opened for. The last two make it, and it must not exist yet."""

    LOOK = auto()
    PASS = auto()
    LIST = auto()
    READ = auto()
    APPEND = auto()
    LINK = auto()
    """To get a second name."""
    MOVE = auto()
    """To get another name, or to go."""
    CREATE = auto()
    MAKE_DIRECTORY = auto()


class Listed(NamedTuple):
    """A name in a directory, and the mode of what has it, of which the kind counts."""

    name: str
    mode: int


class Native(Protocol):
    """What Windows is asked, one call or two for each.

    A descriptor is one of the C library for the handle: the functions of `os` read, write, cut, flush and close by
    it. A directory has one as well. They raise OSError with the numbers of POSIX, or SharingViolation.
    """

    def open_root(self, path: str) -> int:
        """The directory at an absolute path."""

    def open_relative(self, directory: int, name: str, access: Access) -> int:
        """What has that name in a directory, "." itself; a reparse point itself, and shared with everybody."""

    def list(self, directory: int) -> list[Listed]:
        """All that is in a directory, which was opened for that, but for "." and ".."."""

    def stat(self, descriptor: int) -> os.stat_result:
        """What is open; a reparse point is a link."""

    def read_link(self, descriptor: int) -> str:
        """Where a link or a junction leads; EINVAL for another reparse point."""

    def rename(self, descriptor: int, directory: int, name: str, replace: bool) -> None:
        """Gives what is open, for MOVE, that name in a directory; over a file that has it only with `replace`."""

    def link(self, descriptor: int, directory: int, name: str) -> None:
        """Gives the file that is open a second name, which must be free."""

    def remove(self, descriptor: int) -> None:
        """Takes away the name of what is open for MOVE: ENOTEMPTY for a directory that holds something."""

    def set_times(self, descriptor: int, nanoseconds: int) -> None:
        """Sets the times of the last change and the last access, in nanoseconds since 1970."""


class Handles(System):
    """What is asked of Windows, with what its files need besides: names checked, and patience."""

    exchanges = False
    syncs_directories = False

    def __init__(self, native: Native, pause: float = 0.004) -> None:
        """`pause` is the first one, in seconds, before an act is tried again; each is twice as long as the last."""
        self._native = native
        self._pause = pause

    def open_root(self, path: str) -> int:
        """The directory at a path that is trusted, to pass through it."""
        return self._directory(self._retry_locked(partial(self._native.open_root, path)))

    def open_start(self, path: Path, listed: bool) -> int:
        """The directory at a path that is trusted, which may be a link; unless it is `listed`, to pass through it."""
        start = self.open_root(os.path.realpath(path, strict=True))
        try:
            return (self.open_directory if listed else self.enter)(start, ".")
        finally:
            os.close(start)

    def enter(self, directory: int | None, name: str) -> int:
        """A directory, to pass through it."""
        return self._directory(self._open(directory, name, Access.PASS))

    def open_directory(self, directory: int | None, name: str) -> int:
        """A directory, to see what is in it."""
        return self._directory(self._open(directory, name, Access.LIST))

    def open_file(self, directory: int | None, name: str) -> int:
        """A file, to read it."""
        return self._no_link(self._open(directory, name, Access.READ))

    def append(self, directory: int | None, name: str) -> int:
        """A file, to write at its end."""
        return self._no_link(self._open(directory, name, Access.APPEND))

    def create(self, directory: int | None, name: str, _mode: int) -> int:
        """A file that must not exist yet, to write it; who may do what with it, it has of its directory."""
        return self._open(directory, name, Access.CREATE)

    def make_directory(self, directory: int | None, name: str, _mode: int) -> None:
        """Makes a directory; who may do what with it, it has of the one it is in."""
        os.close(self._open(directory, name, Access.MAKE_DIRECTORY))

    def make_link(self, _directory: int | None, _name: str, _target: str) -> None:
        """Refused: most users of Windows may make no links."""
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    def stat(self, directory: int | None, name: str) -> os.stat_result:
        """What is there; a link itself."""
        with self._opened(directory, name, Access.LOOK) as descriptor:
            return self._native.stat(descriptor)

    def read_link(self, directory: int | None, name: str) -> str:
        """What a link says; EINVAL for anything else."""
        with self._opened(directory, name, Access.LOOK) as descriptor:
            if not stat.S_ISLNK(self._native.stat(descriptor).st_mode):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            return self._native.read_link(descriptor)

    @contextmanager
    def scan(self, directory: int | str) -> Iterator[Iterator["os.DirEntry[str]"]]:
        """What is in a directory; entries are looked at while it is open."""
        here = cast("int", directory)
        found = (_Listing(self, here, one) for one in self._native.list(here))
        yield cast("Iterator[os.DirEntry[str]]", found)

    def rename(self, old: Name, new: Name) -> None:
        """Gives another name, which must be free."""
        self._rename(old, new, replace=False)

    def replace(self, old: Name, new: Name) -> None:
        """Gives another name, over a file that has it."""
        self._rename(old, new, replace=True)

    def link(self, old: Name, new: Name) -> None:
        """Gives a file a second name, which must be free."""
        directory = self._checked(*new, is_new=True)
        with self._opened(*old, Access.LINK) as descriptor:
            self._retry_locked(partial(self._native.link, descriptor, directory, new[1]))

    def unlink(self, directory: int | None, name: str) -> None:
        """Takes away what is no directory."""
        self._remove(directory, name, is_directory=False)

    def remove_directory(self, directory: int | None, name: str) -> None:
        """Takes away an empty directory."""
        self._remove(directory, name, is_directory=True)

    def is_writable(self, _directory: int | None, _name: str) -> bool:
        """Whoever may not write to it is told so when he does."""
        return True

    def narrow_mode(self, _directory: int, _mode: int) -> None:
        """Nothing: a directory has no bits of permission."""

    def set_times(self, descriptor: int, _directory: int | None, _name: str) -> None:
        """Has an open file be changed now, whatever the clock of its file system says."""
        self._native.set_times(descriptor, time.time_ns())

    def _rename(self, old: Name, new: Name, replace: bool) -> None:
        directory = self._checked(*new, is_new=True)
        with self._opened(*old, Access.MOVE) as descriptor:
            self._retry_locked(partial(self._native.rename, descriptor, directory, new[1], replace))

    def _remove(self, directory: int | None, name: str, is_directory: bool) -> None:
        with self._opened(directory, name, Access.MOVE) as descriptor:
            if stat.S_ISDIR(self._native.stat(descriptor).st_mode) != is_directory:
                number = errno.ENOTDIR if is_directory else errno.EISDIR
                raise OSError(number, os.strerror(number))
            self._retry_locked(partial(self._native.remove, descriptor))

    @contextmanager
    def _opened(self, directory: int | None, name: str, access: Access) -> Iterator[int]:
        descriptor = self._open(directory, name, access)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open(self, directory: int | None, name: str, access: Access) -> int:
        is_new = access in (Access.CREATE, Access.MAKE_DIRECTORY)
        here = self._checked(directory, name, is_new)
        return self._retry_locked(partial(self._native.open_relative, here, name, access))

    def _checked(self, directory: int | None, name: str, is_new: bool = False) -> int:
        """The directory, where the name is one that Windows takes as it is written. Raises OSError."""
        if directory is None:
            raise ValueError("there is no handle of a directory to begin at")
        # On POSIX a file can have such a name; here it can be nobody's, or is another way to say one.
        if name in ("", "..") or "\\" in name or "/" in name or refusal_of_name(name) is not None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if len(name.encode("utf-16-le", "surrogatepass")) > 2 * _LONGEST:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        if is_short(name) and not self._lists(directory, name):
            number = errno.EINVAL if is_new else errno.ENOENT
            raise OSError(number, os.strerror(number))
        return directory

    def _lists(self, directory: int, name: str) -> bool:
        with self._opened(directory, ".", Access.LIST) as here:
            return name.upper() in (one.name.upper() for one in self._native.list(here))

    def _directory(self, descriptor: int) -> Opened:
        with ExitStack() as on_failure:
            on_failure.callback(os.close, descriptor)
            if not stat.S_ISDIR(self._native.stat(descriptor).st_mode):
                raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            on_failure.pop_all()
        opened = Opened(descriptor)
        opened.system = self
        return opened

    def _no_link(self, descriptor: int) -> int:
        with ExitStack() as on_failure:
            on_failure.callback(os.close, descriptor)
            if stat.S_ISLNK(self._native.stat(descriptor).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            on_failure.pop_all()
        return descriptor

    def _retry_locked(self, act: Callable[[], T]) -> T:
        """What `act` gives, tried again where somebody stands in its way."""
        pause = self._pause
        for _ in range(_ATTEMPTS - 1):
            try:
                return act()
            except SharingViolation:
                time.sleep(pause)
                pause *= 2
        return act()


class _Listing:
    """What `os.DirEntry` tells of an entry, links not followed."""

    def __init__(self, system: Handles, directory: int, listed: Listed) -> None:
        self.name = listed.name
        self._system, self._directory, self._mode = system, directory, listed.mode

    def is_file(self, *, follow_symlinks: bool = False) -> bool:
        return stat.S_ISREG(self._mode)

    def is_dir(self, *, follow_symlinks: bool = False) -> bool:
        return stat.S_ISDIR(self._mode)

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self._mode)

    def stat(self, *, follow_symlinks: bool = False) -> os.stat_result:
        return self._system.stat(self._directory, self.name)


class HandleWalker(DescriptorWalker):
    """Finds entries beneath the roots by handles."""

    def __init__(self, roots: Roots, native: Native) -> None:
        super().__init__(roots, Handles(native))

    def held(self, _index: int) -> None:
        """None: what small files are read by takes descriptors of POSIX alone."""

"""Python as on a system without POSIX, as far as that can be had on Linux, for every program that finds this first.

Modules of the project see `os`, `select` and `signal` without the names that Windows lacks, and get no `fcntl`. No
act takes the descriptor of a directory. The libraries see the system as it is, since they chose their ways by it
already. Paths stay those of this system.
"""

import asyncio
import builtins
import os
import sys
import types
from collections.abc import Callable
from typing import Any

BUNDLE_PACKAGE = ("shared", "servers")
MISSING_MODULES = {"fcntl", "grp", "pwd", "pty", "resource", "syslog", "termios", "tty"}
MISSING = {
    "os": {
        *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "chown", "fchmod", "fchown", "fork"),
        *("getegid", "geteuid", "getgid", "getpgid", "getuid", "killpg", "lchown", "mkfifo", "pread", "pwrite"),
        *("get_blocking", "set_blocking", "setsid", "statvfs", "uname"),
    },
    "select": {"poll", "epoll", "POLLERR", "POLLHUP", "POLLIN", "POLLPRI"},
    "signal": {
        "SIGALRM",
        "SIGCHLD",
        "SIGHUP",
        "SIGKILL",
        "SIGPIPE",
        "SIGURG",
        "SIGUSR1",
        "SIGUSR2",
        "pthread_sigmask",
    },
}


def by_path(act: Callable[..., Any]) -> Callable[..., Any]:
    """The act as where there are only paths: no descriptor stands for a directory, or for what is named."""

    def acts(path: Any = ".", *others: Any, **more: Any) -> Any:
        if isinstance(path, int) or any(
            more.pop(name, None) is not None for name in ("dir_fd", "src_dir_fd", "dst_dir_fd")
        ):
            raise NotImplementedError(f"{act.__name__} takes no descriptor here")
        if act is os.link and not more.pop("follow_symlinks", True):
            raise NotImplementedError("link follows links here")
        if act is os.open and os.path.isdir(path):
            raise PermissionError(13, "directories can't be opened here")
        return act(path, *others, **more)

    return acts


BY_PATH = [
    "access",
    "chmod",
    "link",
    "mkdir",
    "open",
    "readlink",
    "remove",
    "rename",
    "replace",
    "rmdir",
    "scandir",
    "stat",
    "symlink",
    "unlink",
    "utime",
]


def without(module: types.ModuleType, missing: set[str]) -> types.ModuleType:
    """The module as it is where these names are missing."""
    other = types.ModuleType(module.__name__)
    other.__dict__.update({name: value for name, value in vars(module).items() if name not in missing})
    return other


ELSEWHERE = {name: without(sys.modules[name], missing) for name, missing in MISSING.items()}
for one in BY_PATH:
    setattr(ELSEWHERE["os"], one, by_path(getattr(os, one)))
ELSEWHERE["os"].supports_dir_fd = set()  # type: ignore[attr-defined]
ELSEWHERE["os"].supports_fd = set()  # type: ignore[attr-defined]
_import = builtins.__import__


def imported(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    """What `import` gives a module here."""
    package = str((globals or {}).get("__package__") or "")
    if package.partition(".")[0] in BUNDLE_PACKAGE and level == 0:
        if name in MISSING_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name.partition(".")[0] in ELSEWHERE:
            return ELSEWHERE[name.partition(".")[0]]
    return _import(name, globals, locals, fromlist, level)


def refuse(*_: Any) -> None:
    """As the event loop of Windows says where it can't wait for something."""
    raise NotImplementedError


builtins.__import__ = imported
asyncio.SelectorEventLoop.add_reader = refuse  # type: ignore[method-assign]
asyncio.SelectorEventLoop.add_writer = refuse  # type: ignore[method-assign]
asyncio.SelectorEventLoop.add_signal_handler = refuse  # type: ignore[method-assign]

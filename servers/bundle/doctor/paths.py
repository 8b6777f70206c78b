"""Are the files and directories there that a server is given, and may it read them?"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..catalog import Argument
from .command_line import is_on
from .configurations import Launch
from .findings import Finding, fault, warning

__all__ = ["check_paths"]

_MODES = ("ro", "rw")


def check_paths(launch: Launch, given: Sequence[tuple[Argument, str]]) -> Iterator[Finding]:
    """Looks at every path in the arguments."""
    switched = {argument.option for argument, value in given if is_on(argument, value)}
    writes = launch.entry.permissions.writing in switched
    for argument, value in given:
        written, mode = _path(argument, value)
        if argument.name in launch.entry.permissions.paths and written and not written.startswith(":"):
            yield from _look(launch, argument, Path(written), "--create" in switched)
            if writes and mode != "ro":
                yield from _writable(launch, _expanded(Path(written)))


def _path(argument: Argument, value: str) -> tuple[str, str]:
    """The path in `DIR:MODE` or `NAME=PATH:MODE`, as the argument has it, and its mode."""
    if argument.type != "string":
        return value, ""
    if "=" in (argument.metavar or ""):
        value = value.partition("=")[2]
    path, _, mode = value.rpartition(":")
    return (path, mode) if mode in _MODES else (value, "")


def _look(launch: Launch, argument: Argument, path: Path, creates: bool) -> Iterator[Finding]:
    wanted = "directory" if argument.type == "directory" or "DIR" in (argument.metavar or "") else "file"
    there = _expanded(path)
    where, correct = launch.where, f"correct the path in {launch.file}"
    if not there.is_absolute():
        fix = f"in {launch.file} write {launch.directory / there}, if that is the one"
        yield fault(where, f"{path} is no absolute path, and means another place with every client", fix)
    elif not there.exists():
        if wanted != "file" or not creates:
            make = "make the directory" if wanted == "directory" else "put the file there"
            yield fault(where, f"the {wanted} {path} does not exist", f"{make}, or {correct}")
        elif not there.parent.is_dir():
            yield fault(where, f"{path} can't be made: {there.parent} is no directory", f"make it, or {correct}")
    elif there.is_dir() != (wanted == "directory"):
        yield fault(where, f"{path} is {'a directory' if there.is_dir() else 'a file'} and no {wanted}", correct)
    elif not os.access(there, os.R_OK | (os.X_OK if wanted == "directory" else 0)):
        yield fault(where, f"the {wanted} {path} can't be read by you", f"let yourself read it: chmod u+rX '{there}'")


def _writable(launch: Launch, path: Path) -> Iterator[Finding]:
    if path.exists() and not os.access(path, os.W_OK):
        fix = f"chmod u+w '{path}', or take {launch.entry.permissions.writing} out of {launch.file}"
        yield warning(launch.where, f"writing is allowed, but {path} is write-protected", fix)


def _expanded(path: Path) -> Path:
    return Path(os.path.expanduser(path))  # noqa: PTH111 (pathlib raises where nobody has such a home)

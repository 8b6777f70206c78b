"""Checks that a principal's directory is inside one of the server's directories, with links followed."""

import os
from collections.abc import Iterable
from pathlib import Path


def resolve_within(path: Path, directories: Iterable[Path]) -> Path:
    """Return the real path of the directory `path`. Raises ValueError if it is not a directory, or not in any of the
    `directories`."""
    resolved = _resolve(path)
    if not resolved.is_dir():
        raise ValueError(f"{path} is not a directory")
    if not any(resolved.is_relative_to(_resolve(directory)) for directory in directories):
        raise ValueError(f"{path} is not in any directory of the server")
    return resolved


def _resolve(path: Path) -> Path:
    return Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111 (pathlib raises if the home directory is unknown)

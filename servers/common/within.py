"""Whether a directory lies in one of others, links followed: what an operator gives a principal has to."""

import os
from collections.abc import Iterable
from pathlib import Path


def place_within(path: Path, directories: Iterable[Path]) -> Path:
    """Where the directory `path` really is. Raises ValueError where it is none, or in none of the `directories`."""
    found = _resolved(path)
    if not found.is_dir():
        raise ValueError(f"{path} is not a directory")
    if not any(found.is_relative_to(_resolved(one)) for one in directories):
        raise ValueError(f"{path} is in none of the directories of the server")
    return found


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111 (pathlib raises where nobody has the home)

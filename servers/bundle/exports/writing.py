"""Files on disk, all of them or none."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from shared.kit.rooted.atomic import prepared, put_in_place
from shared.kit.rooted.entries import current, entry_at

__all__ = ["write_files"]


def write_files(folder: Path, files: Mapping[str, bytes], *, force: bool = False) -> list[Path]:
    """Writes each content to its path in `folder`, which is made where it is missing; gives the paths.

    A file that is there and holds something else is only replaced by `force`: else ValueError is raised, and nothing
    is written. Each file is replaced as a whole. Raises OSError where the folder can't be written.
    """
    paths = {folder / name: content for name, content in files.items()}
    for path, content in paths.items():
        if not force and os.path.lexists(path) and (not path.is_file() or path.read_bytes() != content):
            raise ValueError(f"{path} is there and holds something else; --force replaces it")
    for path, content in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, content)
    return list(paths)


def _replace(path: Path, content: bytes) -> None:
    entry = entry_at(path.parent.resolve() / path.name)
    found = current(entry)
    # A link is replaced, and nothing that it leads to is touched.
    like = None if found is None or stat.S_ISLNK(found.st_mode) else found
    put_in_place(prepared(entry, content, like, mode=0o644), entry, found)

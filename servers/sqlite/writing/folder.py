"""The operator's directory of CSV files and backups. A client names files in it, and nothing else: no path leads out.

Nothing of a name but the last part is followed, so a link in the directory is no way out either.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.sqlite.errors import SqliteError
from shared.kit.rooted.atomic import rename, sync_directory
from shared.kit.rooted.directories import entry_in, open_directory, open_to_read
from shared.kit.rooted.entries import create, entry_at

__all__ = ["opened", "reserved"]

_SUFFIX = ".part"


@contextmanager
def opened(directory: Path, name: str) -> Iterator[int]:
    """A descriptor of the regular file called `name`, to read from. Raises SqliteError."""
    if not name or name in (".", "..") or any(character in "/\\:\0" for character in name):
        raise SqliteError("bad_file", "a file is given by its name alone, without any directory")
    try:
        with open_directory(directory, listed=False) as inside:
            handle = open_to_read(entry_in(inside, name))
    except FileNotFoundError:
        raise SqliteError("not_found", "there is no file of that name in the directory of files") from None
    except (OSError, ValueError):
        raise SqliteError("bad_file", "the file can't be opened") from None
    try:
        if not stat.S_ISREG(handle.stat.st_mode):
            raise SqliteError("bad_file", "it is no regular file")
        yield handle.descriptor
    finally:
        os.close(handle.descriptor)


@contextmanager
def reserved(directory: Path, stem: str) -> Iterator[tuple[Path, str]]:
    """A new, empty file, and the name that it gets at the end of the block; where that fails there is none.

    Raises SqliteError. The name is `stem`.db, or `stem`-2.db where there is one, and so on.
    """
    try:
        part, name = _part(directory, stem)
    except OSError as error:
        raise _failed(error) from None
    try:
        yield part, name
        rename(entry_at(part), entry_at(directory / name))
        sync_directory(entry_at(part))
    except OSError as error:
        raise _failed(error) from None
    finally:
        part.unlink(missing_ok=True)


def _part(directory: Path, stem: str) -> tuple[Path, str]:
    number = 1
    while True:
        name = f"{stem}.db" if number == 1 else f"{stem}-{number}.db"
        part = directory / f"{name}{_SUFFIX}"
        number += 1
        try:
            os.close(create(entry_at(part), 0o600))
        except FileExistsError:
            continue
        # Whoever has the part has the name as well, so it can't appear from now on.
        if not os.path.lexists(directory / name):
            return part, name
        part.unlink()


def _failed(error: OSError) -> SqliteError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SqliteError("no_space", "the disk of the directory of files is full")
    return SqliteError(
        "io_error", f"writing to the directory of files failed ({errno.errorcode.get(error.errno or 0, 'EIO')})"
    )

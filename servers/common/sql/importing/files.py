"""Opens sources of rows to import: text that a client sends, or a file in the operator's directory (`--files`).

A client can only use files that are directly in this directory. A name with a separator is refused, and no link is
followed.
"""

import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from shared.program.files.entries import etag_of

from ...files.directories import entry_in, open_directory, open_to_read
from ..errors import SqlError

Opener = Callable[[], AbstractContextManager[BinaryIO]]
"""Opens a source at its beginning, for the duration of a block. An import does this several times."""


def text_opener(text: str) -> Opener:
    """Return an opener for a text, which is read as UTF-8. Raises SqlError for a text that UTF-8 can't encode."""
    try:
        return partial(io.BytesIO, text.encode())
    except UnicodeEncodeError:
        raise SqlError("bad_csv", "the text contains half of a surrogate pair, which UTF-8 can't represent") from None


def file_opener(directory: Path, name: str, version: str) -> Opener:
    """Return an opener for a file in the operator's directory. The opener raises SqlError, with code `changed` if the
    file no longer has this `version`."""
    return partial(_open_file, directory, name, version)


def find_version(directory: Path, name: str) -> str:
    """Return the current version of a file in the operator's directory. Blocks. Raises SqlError."""
    with open_named(directory, name) as descriptor:
        return etag_of(os.fstat(descriptor))


# The thread that reads the file must also open and close it. If the call passed a descriptor to the thread and was
# then cancelled, it would close the descriptor, and the thread might read another file that gets the same number.
@contextmanager
def _open_file(directory: Path, name: str, version: str) -> Iterator[BinaryIO]:
    with open_named(directory, name) as descriptor, open(descriptor, "rb", closefd=False) as file:
        if etag_of(os.fstat(descriptor)) != version:
            raise SqlError("changed", "the file has been changed by another program in the meantime", "Try again.")
        yield file


@contextmanager
def open_named(directory: Path, name: str) -> Iterator[int]:
    """Yield a descriptor of the regular file called `name` in the directory, open for reading. Raises SqlError."""
    if not name or name in (".", "..") or any(character in "/\\:\0" for character in name):
        raise SqlError("bad_file", "specify only the name of the file, without a directory")
    try:
        with open_directory(directory, listed=False) as opened:
            handle = open_to_read(entry_in(opened, name))
    except FileNotFoundError:
        raise SqlError("not_found", "there is no file with that name in the directory for files") from None
    except (OSError, ValueError):
        raise SqlError("bad_file", "the file can't be opened") from None
    try:
        if not stat.S_ISREG(handle.stat.st_mode):
            raise SqlError("bad_file", "it is not a regular file")
        yield handle.descriptor
    finally:
        os.close(handle.descriptor)


def measure(file: BinaryIO) -> tuple[int, Callable[[], int]]:
    """Return the size in bytes of a file just opened, and a function that returns the number of bytes read so far."""
    if isinstance(file, io.BytesIO):
        return file.getbuffer().nbytes, file.tell
    descriptor = file.fileno()
    return os.fstat(descriptor).st_size, partial(os.lseek, descriptor, 0, os.SEEK_CUR)

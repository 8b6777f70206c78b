"""The requested part of a text, and the cursor that continues after a cut.

A cursor contains everything that the next page needs: the file's etag, so that a change is detected; the byte and the
line at which the rest begins; the number of lines still requested; and the charset. It is checked like any argument.
It gives no access to a file: the next call passes the path again.
"""

import re
from typing import NamedTuple

from ..errors import FilesError, changed_error
from .charsets import is_known

_CURSOR = r"([0-9a-f]{16})\.(\d{1,18})\.(\d{1,18})\.(\d{1,18})\.([a-z0-9_-]{1,20})"


class Part(NamedTuple):
    """The requested part: the first `head` lines, counted from line `offset` (1 is the first) if given; the last
    `tail` lines; or the rest from a `cursor` on. With none of these, it is the whole text. The charset is `encoding`,
    or else detected. For a document, `pages` selects pages or a sheet by name.
    """

    head: int | None = None
    tail: int | None = None
    offset: int | None = None
    cursor: str | None = None
    encoding: str | None = None
    pages: str | None = None


WHOLE = Part()


class Cursor(NamedTuple):
    """The start of a page: byte `position`, in line `line`. `lines_left` is the number of lines still requested; 0
    means all. `charset` is empty while it is unknown.
    """

    etag: str
    position: int
    line: int
    lines_left: int
    charset: str

    def __str__(self) -> str:
        return f"{self.etag}.{self.position}.{self.line}.{self.lines_left}.{self.charset}"


def require_valid(part: Part, path: str) -> None:
    """Raise FilesError with code `bad_range` if the arguments contradict each other."""
    forward = part.head is not None or part.offset is not None
    if forward + (part.tail is not None) + (part.cursor is not None) > 1:
        reason = "head with offset, tail, and cursor can't be combined"
        raise FilesError("bad_range", path, reason, "Pass only one of them.")
    for name, value in part._asdict().items():
        if isinstance(value, int) and value < 1:
            raise FilesError("bad_range", path, f"{name} must be at least 1")


def cursor_of(text: str, etag: str, path: str) -> Cursor:
    """Parse a cursor into a file with this `etag`. Raises FilesError with code `changed` if the cursor has another
    etag, and with code `bad_range` if it is malformed."""
    match = re.fullmatch(_CURSOR, text, re.ASCII)
    if match is None or not is_known(match[5]):
        reason = "the cursor did not come from a read"
        raise FilesError("bad_range", path, reason, "Copy it from the last line of the truncated text.")
    if match[1] != etag:
        raise changed_error(path)
    return Cursor(match[1], int(match[2]), int(match[3]), int(match[4]), match[5])

"""Pages of results, and the space left on a page. Items that don't fit are left for the next page, so that the call
does not fail.

A cursor is an opaque string for the position at which a listing or a search stopped; a caller passes it to continue.
It contains a name rather than an index, so entries added or removed before it shift nothing, and every entry that
exists throughout is returned exactly once. The name is only compared with names, and never opened.
"""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

from ..errors import FilesError
from ..read.pages import json_size


class Page(NamedTuple):
    """The requested part of a list: at most `limit` items and `max_bytes` of JSON, from `cursor` on."""

    limit: int
    max_bytes: int
    cursor: str | None = None


class ByteBudget:
    """The number of bytes that a result may take as JSON."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes
        self._empty = True

    def take(self, overhead: int, *texts: str) -> bool:
        """Use up `overhead` bytes and the bytes of `texts`, and return True if they fit. Otherwise use up nothing."""
        cost = overhead + sum(json_size(text) + len('""') for text in texts)
        # The first item always fits, so that no page is empty.
        if cost > self._left and not self._empty:
            return False
        self._empty = False
        self._left -= cost
        return True


class Position(NamedTuple):
    """The last entry of a page, by the components of its path below the directory of the call.

    `number`, if it is not 0, is the last reported line of that file, or the entry's size if entries are sorted by
    size.
    """

    parts: tuple[str, ...]
    number: int = 0


def encode_cursor(position: Position) -> str:
    """Return the cursor of a position."""
    names = b"\0".join(os.fsencode(part) for part in (str(position.number), *position.parts))
    return urlsafe_b64encode(names).decode().rstrip("=")


def decode_cursor(cursor: str) -> Position:
    """Return the position of a cursor. Raises FilesError with code `bad_cursor`."""
    try:
        number, *parts = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).split(b"\0")
        if not parts or not all(parts):
            raise ValueError
        return Position(tuple(os.fsdecode(part) for part in parts), int(number))
    except (ValueError, UnicodeError):
        reason = "the cursor did not come from this tool"
        raise FilesError("bad_cursor", "", reason, "Omit it to start from the beginning.") from None

"""Where a listing or a search stopped, as the opaque string that a caller hands back to go on from there.

A position is a name and not a number: what was added or removed before it meanwhile shifts nothing, so every
entry that exists throughout comes exactly once. It is only compared with names and never opened.
"""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

from servers.filesystem.errors import FilesError


class Position(NamedTuple):
    """The entry that came last, by the components of its path below the start.

    `number` says more where it is not 0: the line of that file that came last, or the entry's size where entries are
    sorted by it.
    """

    parts: tuple[str, ...]
    number: int = 0


def written(position: Position) -> str:
    """The cursor of a position."""
    names = b"\0".join(os.fsencode(part) for part in (str(position.number), *position.parts))
    return urlsafe_b64encode(names).decode().rstrip("=")


def read(cursor: str) -> Position:
    """The position that a cursor stands for. Raises FilesError `bad_cursor`."""
    try:
        number, *parts = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).split(b"\0")
        if not parts or not all(parts):
            raise ValueError
        return Position(tuple(os.fsdecode(part) for part in parts), int(number))
    except (ValueError, UnicodeError):
        reason = "the cursor is not one that this tool gave"
        raise FilesError("bad_cursor", "", reason, "Leave it out to begin at the start.") from None

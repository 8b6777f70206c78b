"""Lists in pages under opaque cursors (2026-07-28, Utilities, Pagination).

A cursor is a sealed offset that is good for one list only; any other text gets -32602. While a list stays
the same, following the cursors shows each entry once.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from .signing import Seal

__all__ = ["cursor_at", "page", "position_of"]

T = TypeVar("T")


def page(
    items: Sequence[T], cursor: str | None, *, name: str, size: int, seal: Seal
) -> tuple[Sequence[T], str | None]:
    """At most `size` of `items` from `cursor` on, and the cursor of the next page, or None at the end.

    `name` tells one list from another. Raises InvalidParams for a cursor that was not issued for it.
    """
    start = position_of(cursor, name=name, seal=seal)
    end = start + size
    following = cursor_at(end, name=name, seal=seal) if end < len(items) else None
    return items[start:end], following


def position_of(cursor: str | None, *, name: str, seal: Seal) -> Any:
    """Where the page begins that `cursor` asks for: 0 without one, else what `cursor_at` was given.

    Raises InvalidParams for a cursor that was not issued for the list called `name`.
    """
    return 0 if cursor is None else seal.open(f"cursor:{name}", cursor)


def cursor_at(position: Any, *, name: str, seal: Seal) -> str:
    """The cursor of the page of the list called `name` that begins at `position`, which is JSON."""
    return seal.close(f"cursor:{name}", position)

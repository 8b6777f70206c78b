"""Lists in pages under opaque cursors (2026-07-28, Utilities, Pagination).

A cursor is a sealed offset that is good for one list only; any other text gets -32602. While a list stays
the same, following the cursors shows each entry once.
"""

from collections.abc import Sequence
from typing import TypeVar

from .sealing import Seal

__all__ = ["page"]

T = TypeVar("T")


def page(
    items: Sequence[T], cursor: str | None, *, name: str, size: int, seal: Seal
) -> tuple[Sequence[T], str | None]:
    """At most `size` of `items` from `cursor` on, and the cursor of the next page, or None at the end.

    `name` tells one list from another. Raises InvalidParams for a cursor that was not issued for it.
    """
    start = 0 if cursor is None else seal.open(f"cursor:{name}", cursor)
    end = start + size
    following = seal.close(f"cursor:{name}", end) if end < len(items) else None
    return items[start:end], following

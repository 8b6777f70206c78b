"""Lists in pages, and their cursors.

A cursor is a signed position that is valid only for one list; any other string is refused with -32602. While a list
stays the same, following the cursors shows each entry once (2026-07-28, Utilities, Pagination). The position contains
the last entry shown, so that no other entry is missed if one is added or removed before it.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .signing import Signer

T = TypeVar("T")


def page(
    items: Sequence[T], cursor: str | None, key: Callable[[T], str], *, name: str, size: int, signer: Signer
) -> tuple[Sequence[T], str | None]:
    """Return at most `size` of `items` from `cursor` on, and the cursor of the next page, or None at the end.

    `key` identifies an item, and `name` distinguishes lists. Raises InvalidParams for a cursor that was not issued
    for this list.
    """
    position = read_position(cursor, name=name, signer=signer)
    start = find_start(items, key, *position) if position else 0
    end = start + size
    # A full last page has no cursor, since a client that followed it would get an empty page.
    next_cursor = make_cursor([end, key(items[end - 1])], name=name, signer=signer) if end < len(items) else None
    return items[start:end], next_cursor


def find_start(items: Sequence[T], key: Callable[[T], str], end: int, last: str) -> int:
    """Return the start of the page after one that ended before number `end`, with the item whose key is `last`."""
    if end <= len(items) and key(items[end - 1]) == last:
        return end
    # If it was removed, the items after it moved by at least one.
    return next((number for number, item in enumerate(items, 1) if key(item) == last), end - 1)


def read_position(cursor: str | None, *, name: str, signer: Signer) -> Any:
    """Return the position in `cursor`: 0 if there is no cursor, otherwise the argument of `make_cursor`.

    Raises InvalidParams for a cursor that was not issued for the list called `name`.
    """
    return 0 if cursor is None else signer.verify(f"cursor:{name}", cursor)


def make_cursor(position: Any, *, name: str, signer: Signer) -> str:
    """Return a cursor of the list called `name` with a `position`, which is JSON."""
    return signer.sign(f"cursor:{name}", position)

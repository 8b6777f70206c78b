"""Pagination: pages of lists, and the cursors between them.

A cursor is a signed position that is valid for one list only; any other string is refused with -32602. A client that
follows the cursors receives each entry once while the list stays the same (2026-07-28, Utilities, Pagination). The
position contains the key of the last entry that was sent, so that the client misses no other entry if one is added or
removed before it.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .signing import Signer

T = TypeVar("T")


def page(
    items: Sequence[T], cursor: str | None, key: Callable[[T], str], *, name: str, size: int, signer: Signer
) -> tuple[Sequence[T], str | None]:
    """Return at most `size` of `items` from `cursor` on, and the cursor of the next page, or None at the end.

    `key` returns the key of an item, and `name` is the name of the list. Raises InvalidParams for a cursor that was
    not issued for this list.
    """
    position = read_position(cursor, name=name, signer=signer)
    start = find_start(items, key, *position) if position else 0
    end = start + size
    # A full last page has no cursor, since a client that followed it would get an empty page.
    next_cursor = make_cursor([end, key(items[end - 1])], name=name, signer=signer) if end < len(items) else None
    return items[start:end], next_cursor


def find_start(items: Sequence[T], key: Callable[[T], str], end: int, last: str) -> int:
    """Return the index at which the next page starts. The previous page ended before index `end`; the key of its last
    item is `last`."""
    if end <= len(items) and key(items[end - 1]) == last:
        return end
    # If that item was removed, those after it have moved by at least one, so the next page starts one index earlier.
    return next((number for number, item in enumerate(items, 1) if key(item) == last), end - 1)


def read_position(cursor: str | None, *, name: str, signer: Signer) -> Any:
    """Return the position in `cursor`, which was given to `make_cursor`; 0 if `cursor` is None.

    Raises InvalidParams for a cursor that was not issued for the list called `name`.
    """
    return 0 if cursor is None else signer.verify(f"cursor:{name}", cursor)


def make_cursor(position: Any, *, name: str, signer: Signer) -> str:
    """Return a cursor of the list called `name` that contains `position`, which may be any JSON."""
    return signer.sign(f"cursor:{name}", position)

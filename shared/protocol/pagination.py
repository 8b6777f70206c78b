"""Lists in pages, and their cursors.

A cursor is a signed position that is valid for one list only; any other text gets -32602. While a list stays the
same, following the cursors shows each entry once (2026-07-28, Utilities, Pagination).
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from .signing import Signer

T = TypeVar("T")


def page(
    items: Sequence[T], cursor: str | None, *, name: str, size: int, signer: Signer
) -> tuple[Sequence[T], str | None]:
    """Return at most `size` of `items` from `cursor` on, and the cursor of the next page, or None at the end.

    `name` distinguishes lists. Raises InvalidParams for a cursor that was not issued for it.
    """
    start = position_of(cursor, name=name, signer=signer)
    end = start + size
    # A full last page has no cursor: a client that followed one would get an empty page.
    following = cursor_at(end, name=name, signer=signer) if end < len(items) else None
    return items[start:end], following


def position_of(cursor: str | None, *, name: str, signer: Signer) -> Any:
    """Return the position where the page of `cursor` begins: 0 without one, else the argument of `cursor_at`.

    Raises InvalidParams for a cursor that was not issued for the list called `name`.
    """
    return 0 if cursor is None else signer.verify(f"cursor:{name}", cursor)


def cursor_at(position: Any, *, name: str, signer: Signer) -> str:
    """Return the cursor of the page of the list called `name` that begins at `position`, which is JSON."""
    return signer.sign(f"cursor:{name}", position)

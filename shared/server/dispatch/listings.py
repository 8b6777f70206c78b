"""The pages of lists that are the same for every caller."""

from typing import Any

from ...protocol.pagination import page
from ...protocol.shaping import CachedResult
from ...protocol.signing import Signer

FRESH_MS = 60_000
"""The number of milliseconds for which a client may cache a list of tools, prompts or templates. The client is also
notified of changes."""

_Entries = list[dict[str, Any]]
_NOTHING: tuple[_Entries | None, CachedResult] = (None, CachedResult({}))


class Listings:
    """The pages of lists that are the same for every caller. A page is built once, and used again while the entries
    are the same; they are compared each time, so a change need not be reported. Pages are stored for issued cursors
    only, so their number is limited."""

    def __init__(self) -> None:
        self._pages: dict[tuple[str, str | None, int], tuple[_Entries | None, CachedResult]] = {}

    def page(self, name: str, entries: _Entries, cursor: str | None, *, size: int, signer: Signer) -> CachedResult:
        """Return the page of the list `name` that begins at `cursor`, as a result that anyone may cache.

        Raises InvalidParams for a cursor that was not issued for this list.
        """
        cached_entries, cached = self._pages.get((name, cursor, size), _NOTHING)
        if cached_entries == entries:
            return cached

        def key(entry: dict[str, Any]) -> str:
            return str(entry.get("uriTemplate") or entry["name"])

        page_entries, next_cursor = page(entries, cursor, key, name=name, size=size, signer=signer)
        result = {name: page_entries, "ttlMs": FRESH_MS, "cacheScope": "public"}
        if next_cursor is not None:
            result["nextCursor"] = next_cursor
        cached = CachedResult(result)
        self._pages[name, cursor, size] = list(entries), cached
        return cached

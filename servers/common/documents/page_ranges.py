"""Parses and writes page ranges, such as "3", "251-300", "1,4-6" or "20-"."""

import re
from collections.abc import Iterable

from shared.text import quote_name

from .document import DocumentError

_RANGE = re.compile(r"\s*([1-9][0-9]{0,6})\s*(?:(-)\s*([0-9]{1,7})?\s*)?")


def choose_pages(requested: str | None, total: int) -> list[int]:
    """Return the numbers of the `requested` pages, sorted; all pages if it is None. `total` is the number of pages.

    Pages are numbered from 1. A range may extend beyond the last page. Raises DocumentError with code `bad_argument`
    if `requested` is not a list of ranges, or a range begins after the last page.
    """
    if requested is None:
        return list(range(1, total + 1))
    numbers: set[int] = set()
    for part in requested.split(","):
        match = _RANGE.fullmatch(part)
        first = int(match[1]) if match else 0
        last = int(match[3] or (total if match[2] else first)) if match else 0
        if first > total:
            raise DocumentError("bad_argument", f"there are only {total} pages, so there is no page {first}")
        if not first <= last or not first:
            reason = f"pages={quote_name(part)} is neither a page nor a range of pages"
            raise DocumentError("bad_argument", reason, 'Write pages as "3", "251-300" or "1,4-6".')
        numbers.update(range(first, min(last, total) + 1))
    return sorted(numbers)


def format_ranges(numbers: Iterable[int]) -> str:
    """Return sorted page numbers in the notation of `choose_pages`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)

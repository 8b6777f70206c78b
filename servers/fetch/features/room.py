"""Computes the space in a result for the text of a page."""

from pydantic_core import to_json

from .state import Ctx

OVERHEAD_BYTES = 70_000
"""Bytes in a result for everything except the text of a page: fifty redirects, listed twice, and a long URL."""
_NUMBER_BYTES = 40
"""Number of bytes by which the numbers in a result may grow."""


def room_for_text(ctx: Ctx, frame: str) -> int:
    """Return the number of bytes of JSON that the text of a page may take: the part of a result that the client's
    host shows, less the size of `frame` (the result without the text), but at least half of that part."""
    page = ctx.budget.page_bytes - len(to_json(frame)) - _NUMBER_BYTES
    return max(min(page, ctx.budget.result_bytes - OVERHEAD_BYTES), ctx.budget.page_bytes // 2)

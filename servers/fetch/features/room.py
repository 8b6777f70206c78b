"""The space in a result for the text of pages."""

from pydantic_core import to_json

from .state import Ctx

OVERHEAD_BYTES = 70_000
"""Number of bytes in a result for everything except the text of a page: fifty redirects, listed twice, and a long
URL."""
_NUMBER_BYTES = 40
"""Number of bytes by which the numbers in a result may grow."""


def room_for_text(ctx: Ctx, frame: str) -> int:
    """Return the number of bytes of JSON for the text of a page: the number that the client's host shows, less the
    size of `frame` (the result without text), but at least half of it."""
    page = ctx.budget.page_bytes - len(to_json(frame)) - _NUMBER_BYTES
    return max(min(page, ctx.budget.result_bytes - OVERHEAD_BYTES), ctx.budget.page_bytes // 2)

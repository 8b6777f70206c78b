"""The room in an answer for the text of pages."""

from pydantic_core import to_json

from .state import Ctx

BESIDES = 70_000
"""Bytes of a result for everything besides the text of a page: fifty redirects, listed twice, and a long URL."""
_NUMBERS = 40
"""Bytes that the numbers in an answer may grow by."""


def room_for_text(ctx: Ctx, frame: str) -> int:
    """Return the number of bytes of JSON for the text of a page: what `frame`, the answer without it, leaves of what
    the client's host shows, and at least half of that."""
    page = ctx.budget.page_bytes - len(to_json(frame)) - _NUMBERS
    return max(min(page, ctx.budget.result_bytes - BESIDES), ctx.budget.page_bytes // 2)

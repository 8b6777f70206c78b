"""Messages to users in addition to results, as log messages for clients that have set a log level. They contain only
the host of a URL, since the rest may be secret.
"""

from typing import Any
from urllib.parse import urlsplit

from shared import Context

from ..pages.texts import Piece

SLOW_SECONDS = 5.0
"""Seconds that a site may take for a page without a log message. Most take less than one second."""
_LOGGER = "fetch"


async def report_slow(ctx: Context[Any], url: str, seconds: float) -> None:
    """Log that a site took `seconds` for a page, or until the request was abandoned, if that is slow."""
    if seconds > SLOW_SECONDS:
        await ctx.log("notice", f"{_host_of(url)} is slow: a page took {seconds:.1f} s", _LOGGER)


async def report_cut(ctx: Context[Any], url: str, piece: Piece) -> None:
    """Log that a page was too long for one answer."""
    shown = f"characters {piece.start:,} to {piece.end:,} of {piece.total:,} shown"
    await ctx.log("info", f"a page from {_host_of(url)} was truncated: {shown}", _LOGGER)


def _host_of(url: str) -> str:
    return urlsplit(url.strip()).hostname or "a site"

"""Fills a page with as many rows of a query as fit into one result. Their sizes are known only when they arrive."""

from collections.abc import Sequence
from typing import NamedTuple

from servers.common.sql.query.pages import AnswerLimits, Page, PageBuilder

from .catalog import Session
from .engine.answers import Cell
from .values import Codec

_CURSOR = "mcp_bundle_rows"
_GROWTH_FACTOR = 4
"""Each fetch requests at most this many times as many rows as the last one."""
_LARGE_PAGE_BYTES = 1_000_000
"""If the last fetch returned at least this many bytes, further rows are fetched one by one."""


class FilledPage(NamedTuple):
    """The first rows of a query."""

    names: list[str]
    page: Page
    has_more: bool
    """True if there are rows after these."""


async def fill_page(session: Session, sql: str, parameters: Sequence[Cell], limits: AnswerLimits) -> FilledPage:
    """Return the first rows of a query, as many as fit.

    Raises SqlError, with code `too_large` if not even one row fits.
    """
    await session.run(f"DECLARE {_CURSOR} NO SCROLL CURSOR FOR {sql}", parameters)
    limit = 1
    result = await session.run(f"FETCH FORWARD {limit} FROM {_CURSOR}", ())
    types = await session.types.read([column.oid for column in result.columns], session.ask)
    names = [column.name for column in result.columns]
    page = PageBuilder(names, limits, Codec(types).encode)
    rest = page.add(result.rows)
    while not rest and len(result.rows) == limit and (count := page.rows_to_fetch):
        size = sum(len(cell) for row in result.rows for cell in row if cell is not None)
        limit = min(count, limit * _GROWTH_FACTOR) if size < _LARGE_PAGE_BYTES else 1
        result = await session.run(f"FETCH FORWARD {limit} FROM {_CURSOR}", ())
        rest = page.add(result.rows)
    if not rest and len(result.rows) == limit:
        rest = [*(await session.run(f"FETCH FORWARD 1 FROM {_CURSOR}", ())).rows]
    await session.run(f"CLOSE {_CURSOR}", ())
    return FilledPage(names, Page(page.encoded, [kind.name for kind in types]), bool(rest))

"""As many rows of a query as one answer may have, which is told only as they come."""

from collections.abc import Sequence
from typing import NamedTuple

from servers.common.sql.query.pages import AnswerLimits, Page, PageBuilder
from servers.postgres.catalog import Session
from servers.postgres.engine.answers import Cell
from servers.postgres.values import Codec

_CURSOR = "mcp_bundle_rows"
_GROWTH = 4
"""How many times as many rows as before are fetched next."""
_LARGE = 1_000_000
"""Bytes of the rows that came last, after which others are fetched one by one."""


class Filled(NamedTuple):
    """Rows of a query."""

    names: list[str]
    page: Page
    more: bool
    """Whether there are rows after these."""


async def fill_page(session: Session, sql: str, parameters: Sequence[Cell], limits: AnswerLimits) -> Filled:
    """The first rows of a query, as many as there is room for.

    Raises SqlError, `too_large` where not even one row has room.
    """
    await session.run(f"DECLARE {_CURSOR} NO SCROLL CURSOR FOR {sql}", parameters)
    most = 1
    result = await session.run(f"FETCH FORWARD {most} FROM {_CURSOR}", ())
    types = await session.types.read([column.oid for column in result.columns], session.ask)
    names = [column.name for column in result.columns]
    page = PageBuilder(names, limits, Codec(types).encode)
    left = page.add(result.rows)
    while not left and len(result.rows) == most and (wanted := page.wanted):
        size = sum(len(cell) for row in result.rows for cell in row if cell is not None)
        most = min(wanted, most * _GROWTH) if size < _LARGE else 1
        result = await session.run(f"FETCH FORWARD {most} FROM {_CURSOR}", ())
        left = page.add(result.rows)
    if not left and len(result.rows) == most:
        left = [*(await session.run(f"FETCH FORWARD 1 FROM {_CURSOR}", ())).rows]
    await session.run(f"CLOSE {_CURSOR}", ())
    return Filled(names, Page(page.made, [kind.name for kind in types]), bool(left))

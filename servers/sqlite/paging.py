"""Fills a page with as many rows of a cursor as fit into one result."""

from collections.abc import Iterator, Sequence
from itertools import islice

from servers.common.sql.query.pages import AnswerLimits, Page, PageBuilder, Row, fetch, find_space_for_rows, measure

from .values import encode_row, encode_rows, find_type, find_types


def fill_page(names: Sequence[str], rows: Iterator[Row], limits: AnswerLimits) -> tuple[Page, list[Row]]:
    """Return as many of the next `rows` as fit, and the next rows that were fetched but did not fit; if there are
    none, `rows` has ended.

    Raises SqlError with code `too_large` if not even one row fits.
    """
    page = PageBuilder(names, limits, encode_rows)
    rest: list[Row] = []
    while limit := page.rows_to_fetch:
        fetched = fetch(rows, limit, page.left)
        rest = page.add(fetched)
        if rest or not fetched:
            break
    columns = zip(*page.fetched, strict=True)
    types = [", ".join(sorted(find_types(values))) for values in columns] or [""] * len(names)
    return Page(page.encoded, types), rest or list(islice(rows, 1))


def fill_row(names: Sequence[str], row: Row, limits: AnswerLimits) -> Page | None:
    """Return a page with the only row of a query; None if its values would have to be truncated more. It is a faster
    `fill_page`."""
    encoded = [encode_row(row, limits.cell_bytes)]
    if measure(encoded) > find_space_for_rows(names, limits):
        return None
    return Page(encoded, list(map(find_type, row)))

"""As many rows of a cursor as one answer may have."""

from collections.abc import Iterator, Sequence
from itertools import islice

from servers.common.sql.query.pages import AnswerLimits, Page, PageBuilder, Row, fetch, find_room, measure
from servers.sqlite.values import encode_row, encode_rows, find_types, type_of


def fill_page(names: Sequence[str], rows: Iterator[Row], limits: AnswerLimits) -> tuple[Page, list[Row]]:
    """The next of the `rows`, as many as there is room for, and those that were fetched and had none.

    Raises SqlError `too_large` where not even one row has room.
    """
    page = PageBuilder(names, limits, encode_rows)
    left: list[Row] = []
    while most := page.wanted:
        taken = fetch(rows, most, page.left)
        left = page.add(taken)
        if left or not taken:
            break
    columns = zip(*page.given, strict=True)
    types = [", ".join(sorted(find_types(values))) for values in columns] or [""] * len(names)
    return Page(page.made, types), left or list(islice(rows, 1))


def fill_row(names: Sequence[str], row: Row, limits: AnswerLimits) -> Page | None:
    """The only row of a query as `fill_page` makes it; None where it has no room as it is."""
    made = [encode_row(row, limits.cell_bytes)]
    if measure(made) > find_room(names, limits):
        return None
    return Page(made, list(map(type_of, row)))

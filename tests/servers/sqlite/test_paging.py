"""Rows cut to the limits of an answer."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from servers.common.sql.errors import SqlError
from servers.common.sql.query.pages import AnswerLimits
from servers.common.sql.texts import format_row
from servers.sqlite.paging import fill_page, fill_row

CELLS = st.one_of(st.none(), st.integers(-1_000, 1_000), st.text(max_size=200), st.binary(max_size=200))


@settings(max_examples=40)
@given(st.lists(st.tuples(CELLS, CELLS), max_size=50), st.integers(1, 60), st.integers(2_500, 20_000))
def test_pages_contain_all_rows_within_the_limits(rows: list[tuple[Any, ...]], most: int, size: int) -> None:
    room = AnswerLimits(most, size, 500)
    names, given, left = ["a", "b"], 0, rows
    while left:
        source = iter(left)
        made, waiting = fill_page(names, source, room)
        assert 0 < len(made.rows) <= most
        assert len(to_json(made.rows)) + len(to_json("\n".join(map(format_row, made.rows)))) <= size
        given += len(made.rows)
        left = [*waiting, *source]
        assert left == rows[given:]


def test_the_cells_of_a_large_row_are_cut() -> None:
    made, _ = fill_page(["a"], iter([("x" * 50_000,)]), AnswerLimits(10, 3_000, 10_000))
    (cell,) = made.rows[0]
    assert (cell["bytes"], cell["truncated"]) == (50_000, True)


def test_a_row_beyond_the_limit_is_refused() -> None:
    names = [str(n) for n in range(100)]
    with pytest.raises(SqlError, match="one row of 100 columns is larger") as raised:
        fill_page(names, iter([("x" * 100,) * 100]), AnswerLimits(10, 2_000, 10_000))
    assert raised.value.code == "too_large"


def test_few_rows_are_fetched_beyond_the_page() -> None:
    source = iter([("x" * 1_000,)] * 1_000)
    made, waiting = fill_page(["a"], source, AnswerLimits(1_000, 50_000, 10_000))
    assert len(waiting) <= len(made.rows)


def test_rows_with_large_values_are_fetched_singly() -> None:
    source = iter([("x" * 1_000_000,)] * 1_000)
    made, waiting = fill_page(["a"], source, AnswerLimits(1_000, 50_000, 10_000))
    assert len(made.rows) == 2
    assert len(waiting) == 1


def test_types_are_those_of_the_returned_rows() -> None:
    made, _ = fill_page(["a"], iter([(1,), ("x",), (b"",)]), AnswerLimits(2, 50_000, 10_000))
    assert made.types == ["integer, text"]


@pytest.mark.parametrize("row", [(1, "x", None, 2.5, b"\x00"), ("ä" * 30, 2**60, '"\\')])
def test_fill_row_and_fill_page_agree(row: tuple[Any, ...]) -> None:
    names = [f"column {number}" for number in range(len(row))]
    for cell_bytes in (16, 1_000):
        limits = AnswerLimits(10, 10_000, cell_bytes)
        assert fill_row(names, row, limits) == fill_page(names, iter([row]), limits)[0]


def test_fill_row_is_none_if_the_row_does_not_fit() -> None:
    assert fill_row(["a"], ("x" * 1_000,), AnswerLimits(1, 2_000, 1_000)) is None

"""The byte budget of a result."""

from pydantic_core import to_json

from servers.common.sql.schema.lines import ByteBudget


def test_items_are_selected_while_they_fit_and_the_rest_counted() -> None:
    space = ByteBudget(20)
    assert space.select_fitting(["abc", "x" * 100, "def", "ghi", "jkl"], str) == (["abc", "def"], 3)


def test_the_selected_items_stay_within_the_bytes() -> None:
    items = [f'"{n}"\n' for n in range(1_000)]
    taken, left_out = ByteBudget(5_000).select_fitting(items, str)
    text = "\n  ".join(item.replace("\n", "\n  ") for item in taken)
    assert 3_500 < len(to_json(text)) <= 5_000
    assert len(taken) + left_out == 1_000


def test_a_share_is_subtracted_from_the_budget() -> None:
    space = ByteBudget(100)
    assert (space.split_off(1 / 4).left, space.left) == (25, 75)


def test_nothing_fits_a_negative_budget() -> None:
    assert ByteBudget(-10).split_off(1 / 2).select_fitting(["a"], str) == ([], 1)

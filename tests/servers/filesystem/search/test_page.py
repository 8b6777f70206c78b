"""The byte budget of a page."""

from servers.filesystem.search.page import ByteBudget


def test_a_budget_takes_only_what_fits():
    budget = ByteBudget(20)
    assert budget.take(4, "12345678")
    assert not budget.take(7)
    assert budget.take(6)
    assert not budget.take(1)


def test_a_budget_counts_text_as_json():
    for text, size in (("é\n", 6), ('"', 4)):
        budget = ByteBudget(size + 1)
        assert budget.take(0, text)
        assert budget.take(1)
        assert not budget.take(1)


def test_a_budget_always_takes_the_first_item():
    budget = ByteBudget(1)
    assert budget.take(100)
    assert not budget.take(0)

"""What a page has room for."""

from servers.filesystem.search.page import ByteBudget


def test_what_fits_is_taken_and_what_does_not_is_left():
    budget = ByteBudget(20)
    assert budget.take(4, "12345678")
    assert not budget.take(7)
    assert budget.take(6)
    assert not budget.take(1)


def test_a_text_counts_as_json():
    for text, size in (("é\n", 6), ('"', 4)):
        budget = ByteBudget(size + 1)
        assert budget.take(0, text)
        assert budget.take(1)
        assert not budget.take(1)


def test_the_first_fits_always_since_there_would_be_no_going_on():
    budget = ByteBudget(1)
    assert budget.take(100)
    assert not budget.take(0)

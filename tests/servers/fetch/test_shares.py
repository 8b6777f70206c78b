"""One budget for several pages."""

from hypothesis import given
from hypothesis import strategies as st

from servers.fetch.pages.shares import shares

lengths = st.lists(st.integers(0, 1_000), min_size=1, max_size=20)


def test_a_short_page_leaves_its_room_to_the_others() -> None:
    assert shares([10, 1_000, 1_000], 110) == [10, 50, 50]


@given(lengths, st.integers(0, 10_000))
def test_nothing_is_given_twice_or_kept_back(lengths: list[int], total: int) -> None:
    given = shares(lengths, total)
    assert all(0 <= share <= length for share, length in zip(given, lengths, strict=True))
    assert sum(given) == min(total, sum(lengths))

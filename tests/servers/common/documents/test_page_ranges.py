import pytest

from servers.common.documents.document import DocumentError
from servers.common.documents.page_ranges import choose_pages, write_ranges


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (None, [1, 2, 3, 4, 5, 6]),
        ("3", [3]),
        ("1,4-6", [1, 4, 5, 6]),
        (" 5 - 6 , 1 ", [1, 5, 6]),
        ("2-3,3-4,2", [2, 3, 4]),
        ("5-", [5, 6]),
        ("4-999", [4, 5, 6]),
    ],
)
def test_pages_are_chosen_in_order_and_once(wanted: str | None, numbers: list[int]):
    assert choose_pages(wanted, 6) == numbers


@pytest.mark.parametrize("wanted", ["", "a", "0", "-3", "3-2", "1,", "1;2", "1-2-3", "²", "1.5"])
def test_what_is_no_range_says_how_one_is_written(wanted: str):
    with pytest.raises(DocumentError, match='Write pages as "3", "251-300" or "1,4-6"') as caught:
        choose_pages(wanted, 6)
    assert caught.value.code == "bad_argument"


def test_what_begins_beyond_the_end_says_how_many_pages_there_are():
    with pytest.raises(DocumentError, match="there are only 6 pages, so there is no page 9"):
        choose_pages("2,9-12", 6)


def test_ranges_are_written_as_they_are_read():
    numbers = [1, 2, 3, 5, 8, 9]
    assert write_ranges(numbers) == "1-3,5,8-9"
    assert choose_pages(write_ranges(numbers), 9) == numbers

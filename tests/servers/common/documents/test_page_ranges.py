import pytest

from servers.common.documents.document import DocumentError
from servers.common.documents.page_ranges import choose_pages, format_ranges


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
def test_page_ranges_select_each_page_once_in_order(wanted: str | None, numbers: list[int]):
    assert choose_pages(wanted, 6) == numbers


@pytest.mark.parametrize("wanted", ["", "a", "0", "-3", "3-2", "1,", "1;2", "1-2-3", "²", "1.5"])
def test_an_invalid_range_is_refused_with_examples(wanted: str):
    with pytest.raises(DocumentError, match='Write pages as "3", "251-300" or "1,4-6"') as caught:
        choose_pages(wanted, 6)
    assert caught.value.code == "bad_argument"


def test_a_range_beyond_the_end_is_refused_with_the_number_of_pages():
    with pytest.raises(DocumentError, match="there are only 6 pages, so there is no page 9"):
        choose_pages("2,9-12", 6)


def test_written_ranges_are_read_back_unchanged():
    numbers = [1, 2, 3, 5, 8, 9]
    assert format_ranges(numbers) == "1-3,5,8-9"
    assert choose_pages(format_ranges(numbers), 9) == numbers

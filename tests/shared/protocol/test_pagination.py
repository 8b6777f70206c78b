"""Pages of lists, and cursors that are valid only for their list."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import InvalidParams
from shared.protocol.pagination import page
from shared.protocol.signing import Signer

SIGNER = Signer(b"key")


def pages(items, size, name="tools"):
    cursor, all_pages = None, []
    while True:
        shown, cursor = page(items, cursor, str, name=name, size=size, signer=SIGNER)
        all_pages.append(list(shown))
        if cursor is None:
            return all_pages


@settings(max_examples=30)
@given(st.integers(0, 30), st.integers(1, 12))
def test_pages_have_every_entry_once_in_order(count, size):
    all_pages = pages(range(count), size)
    assert [entry for part in all_pages for entry in part] == list(range(count))
    assert all(len(part) == size for part in all_pages[:-1])


def test_no_empty_page_follows_a_full_last_page():
    assert pages([], 5) == [[]]
    assert pages(range(4), 2) == [[0, 1], [2, 3]]


def cursor_of(name, signer=SIGNER):
    return page(range(9), None, str, name=name, size=2, signer=signer)[1]


def test_cursors_that_were_not_issued_for_the_list_are_refused():
    for cursor in ("", "0", "Mg", "Mg.Mg", "2", cursor_of("prompts"), cursor_of("tools", Signer(b"other"))):
        with pytest.raises(InvalidParams):
            page(range(9), cursor, str, name="tools", size=2, signer=SIGNER)


def test_cursors_beyond_the_end_give_an_empty_last_page():
    assert page([], cursor_of("tools"), str, name="tools", size=2, signer=SIGNER) == ([], None)


@pytest.mark.parametrize(
    ("now", "shown"),
    [("xabcdef", "cd"), ("bcdef", "cd"), ("acdef", "cd"), ("a", "")],
)
def test_no_entry_is_skipped_when_the_list_changes_between_pages(now, shown):
    _, cursor = page("abcdef", None, str, name="tools", size=2, signer=SIGNER)
    assert "".join(page(now, cursor, str, name="tools", size=2, signer=SIGNER)[0]) == shown

"""Lists in pages show each entry once, and cursors are good for the list that gave them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import InvalidParams
from shared.protocol.pagination import page
from shared.protocol.signing import Signer

SIGNER = Signer(b"key")


def pages(items, size, name="tools"):
    cursor, found = None, []
    while True:
        shown, cursor = page(items, cursor, str, name=name, size=size, signer=SIGNER)
        found.append(list(shown))
        if cursor is None:
            return found


@settings(max_examples=30)
@given(st.integers(0, 30), st.integers(1, 12))
def test_every_entry_is_shown_once_in_order(count, size):
    found = pages(range(count), size)
    assert [entry for part in found for entry in part] == list(range(count))
    assert all(len(part) == size for part in found[:-1])


def test_an_empty_list_is_one_empty_page_and_a_full_last_page_is_the_last():
    assert pages([], 5) == [[]]
    assert pages(range(4), 2) == [[0, 1], [2, 3]]


def cursor_of(name, signer=SIGNER):
    return page(range(9), None, str, name=name, size=2, signer=signer)[1]


def test_a_cursor_that_was_not_issued_for_this_list_is_refused():
    for cursor in ("", "0", "Mg", "Mg.Mg", "2", cursor_of("prompts"), cursor_of("tools", Signer(b"other"))):
        with pytest.raises(InvalidParams):
            page(range(9), cursor, str, name="tools", size=2, signer=SIGNER)


def test_a_list_that_has_become_shorter_ends():
    assert page([], cursor_of("tools"), str, name="tools", size=2, signer=SIGNER) == ([], None)


@pytest.mark.parametrize(
    ("now", "shown"),
    [("xabcdef", "cd"), ("bcdef", "cd"), ("acdef", "cd"), ("a", "")],
)
def test_no_entry_is_missed_if_others_come_or_go_between_two_pages(now, shown):
    _, cursor = page("abcdef", None, str, name="tools", size=2, signer=SIGNER)
    assert "".join(page(now, cursor, str, name="tools", size=2, signer=SIGNER)[0]) == shown

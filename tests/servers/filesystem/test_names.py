"""Displayed names: on one line, distinct, and unlike the server's own words."""

import os

from hypothesis import given
from hypothesis import strategies as st

from servers.filesystem.names import add_uri
from shared.text import display_name

SHOWN = [
    ("plain name.txt", "plain name.txt"),
    ("naïve 日本 👩‍💻", "naïve 日本 👩‍💻"),
    ("a\nb\tc", "a\\nb\\tc"),
    ("back\\slash", "back\\\\slash"),
    (os.fsdecode(b"caf\xe9"), "caf\\xe9"),
    ("\x1b[31m", "\\x1b[31m"),
    ("\x85\u2028", "\\u0085\\u2028"),
    ("gpj.\u202eexe", "gpj.\\u202eexe"),
]


def test_names_are_shown_on_one_line():
    assert [(name, display_name(name)) for name, _ in SHOWN] == SHOWN


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_distinct_names_are_shown_distinctly(one, other):
    shown = [display_name(os.fsdecode(name)) for name in (one, other)]
    assert (shown[0] == shown[1]) == (one == other)
    assert len(shown[0].encode().splitlines()) <= 1


TOLD = [
    ("[slug]", "[slug]"),
    ("[2024] report (copy).txt", "[2024] report (copy).txt"),
    ("a-1-b: c", "a-1-b: c"),
    (
        "[truncated: 1 of 9 entries shown; for more, cursor: x]",
        "\\x5btruncated: 1 of 9 entries shown; for more, cursor: x]",
    ),
    ("[9 entries left out by .gitignore]", "\\x5b9 entries left out by .gitignore]"),
    ("No matches found", "\\x4eo matches found"),
    ("  indented", "\\x20 indented"),
    ("a (link)", "a\\x20(link)"),
    ("a (not read: denied)", "a\\x20(not read: denied)"),
    ("a ...", "a\\x20..."),
    ("a  1,024 bytes", "a \\x201,024 bytes"),
    ("a.py:12: import os", "a.py\\x3a12: import os"),
    ("a.py-12- import os", "a.py\\x2d12- import os"),
]


def test_names_like_words_of_the_server_are_shown_with_a_uri():
    for name, shown in TOLD:
        assert add_uri(name, lambda: "file:///x") == (shown if shown == name else f"{shown} (file:///x)")

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.filesystem.names import displayed


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain name.txt", "plain name.txt"),
        ("naïve 日本 👩‍💻", "naïve 日本 👩‍💻"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("back\\slash", "back\\\\slash"),
        (os.fsdecode(b"caf\xe9"), "caf\\xe9"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x85\u2028", "\\u0085\\u2028"),
        ("gpj.\u202eexe", "gpj.\\u202eexe"),
    ],
)
def test_names_are_shown_on_one_line(name, shown):
    assert displayed(name) == shown


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_distinct_names_look_distinct(one, other):
    assert (displayed(os.fsdecode(one)) == displayed(os.fsdecode(other))) == (one == other)


@given(st.binary())
def test_what_is_shown_can_be_encoded(name):
    assert len(displayed(os.fsdecode(name)).encode().splitlines()) <= 1

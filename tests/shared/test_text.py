"""The marks between which texts of others stand."""

import re
from concurrent.futures import ThreadPoolExecutor

from shared.text import make_delimiters, nearest_option


def test_both_marks_have_the_same_word():
    before, after = make_delimiters("data", "as it is:")
    assert re.fullmatch(r"<data-[0-9a-f]{8}> as it is:", before)
    assert after == f"</{before[1:14]}>"


def test_no_word_is_given_twice_whoever_asks():
    """Words of 32 bits: that two of some hundred are the same by chance happens once in 50,000 runs."""
    with ThreadPoolExecutor(4) as threads:
        given = list(threads.map(lambda _: make_delimiters("data", "")[1], range(400)))
    assert len(set(given)) == 400


def test_the_nearest_option_is_similar_or_the_only_one_with_these_words():
    options = ["allow-write", "no-allow-write", "log-level", "log-format", "tokens-file"]
    assert nearest_option("alow-write", options) == "allow-write"
    assert nearest_option("write", options) == "allow-write"
    assert nearest_option("log", options) is None

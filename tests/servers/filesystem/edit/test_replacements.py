"""Where the old text of an edit is found, and what becomes of it."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from servers.filesystem.edit import replacements
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.errors import FilesError


def apply_edits(text, wanted, path=""):
    return replacements.apply_edits(text, [Edit(*one) for one in wanted], path).after


def refused(text, *wanted):
    with pytest.raises(FilesError) as caught:
        apply_edits(text, wanted, "f")
    return caught.value


DEFINED = "def f():\n\tif x:\n\t\treturn 1\n"
RETURNS = ("if x:\n    return 1", "if y:\n    return 2\nelse:\n    return 3")
EDITED = {
    "the one match": ("a b c", [("b", "x")], "a x c"),
    "one upon the other": ("a", [("a", "b"), ("b", "c")], "c"),
    "CRLF stays": ("a\r\nb\r\nc\r\n", [("a\nb\n", "a\nx\ny\n")], "a\r\nx\r\ny\r\nc\r\n"),
    "written with CRLF": ("a\nb\n", [("a\r\nb", "a\r\nx")], "a\nx\n"),
    "mixed line ends": ("a\r\nb\nc\r\nd\n", [("a\nb\nc\nd\n", "a\nB\nc\nd\n")], "a\r\nB\nc\r\nd\n"),
    "the line end of the first line": ("\r\na\nb\nc\n", [("\na\n", "x\ny\n")], "x\r\ny\nb\nc\n"),
    "a line goes": ("a\r\nb\r\nc\r\n", [("b\n", "")], "a\r\nc\r\n"),
    "other indentation": (DEFINED, [RETURNS], "def f():\n\tif y:\n\t    return 2\n\telse:\n\t    return 3\n"),
    "indented less": ("    a\n  b\n", [("      a\n    b\n", "      x\n    y\n")], "    x\n  y\n"),
    "white space behind": ("a  \nb\nc", [("a\nb", "x")], "x\nc"),
    "the last line": ("a\n  b", [("\tb", "\tc")], "a\n  c"),
    "the last line and its end": ("a\n  b\n", [("\tb", "\tc")], "a\n  c\n"),
    "an exact match first": (" a\n  a", [("  a", "b")], " a\nb"),
    "two places": ("x\ny\nx\n", [("x", "z", 2)], "z\ny\nz\n"),
    "two that overlap": ("aaaaa", [("aa", "b", 2)], "bba"),
    "all places": ("x" * 1_000, [("x", "yx", 0)], "yx" * 1_000),
    "all, indented": ("  a\n\ta\nb\n", [("    a\n", "    c\n", 0)], "  c\n\tc\nb\n"),
}


def test_f2_edits_find_their_places_and_keep_indentation_and_line_ends():
    found = {what: apply_edits(text, wanted) for what, (text, wanted, _) in EDITED.items()}
    assert found == {what: expected for what, (*_, expected) in EDITED.items()}


def test_an_old_text_that_is_not_there_is_refused_with_the_nearest_line():
    error = refused("alpha\nbeta gamma\n", ("beta gama", "x"))
    assert error.code == "no_match"
    assert "line 2: 'beta gamma'" in error.suggestion


def test_f4_several_matches_are_refused_with_their_lines_but_not_all_of_very_many():
    error = refused("x\ny\nx\n", ("x", "z"))
    assert (error.code, "lines 1, 3" in error.reason) == ("ambiguous_match", True)
    assert refused("aaa", ("aa", "b")).code == "ambiguous_match"  # they overlap
    shown = "at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"
    assert refused("x\n" * 10, ("x", "z")).reason == f"edit 1: the old text matches 10 places, {shown}"
    more = f"edit 1: the old text matches more than 10 places, {shown}, ..."
    assert refused("x\n" * 100_000, ("x", "z")).reason == more


def test_f5_empty_edits_are_refused():
    for wanted in ([], [("", "x")], [("a", "b"), ("", "x")]):
        assert refused("a", *wanted).code == "bad_edit"


def test_the_error_tells_which_edit():
    assert refused("a", ("a", "b"), ("a", "c")).reason.startswith("edit 2:")


def test_a_loose_match_must_be_the_only_one_and_more_than_white_space():
    assert refused("  a\n   a\n", ("\ta", "b")).code == "ambiguous_match"
    assert refused("\n\n\na", ("   \n  ", "b")).code == "no_match"
    assert refused("x", ("y", "z", 0)).code == "no_match"


@pytest.mark.timeout(10)
def test_repetitive_texts_take_linear_time():
    assert refused("a\n" * 200_000, (" a\n" * 10_000 + " b", "x")).code == "no_match"


def test_another_number_of_places_is_refused_with_their_lines():
    for places in (1, 3, 2**63 - 1, 10**30):
        error = refused("x\ny\nx\n", ("x", "z", places))
        assert error.code == ("ambiguous_match" if places == 1 else "wrong_count")
        assert "matches 2 places, at lines 1, 3" in error.reason


def test_too_many_places_are_refused(monkeypatch):
    monkeypatch.setattr(replacements, "MAX_PLACES", 100)
    assert "more than 100 places" in refused("x" * 101, ("x", "y", 0)).reason


TEXTS = st.text("ab \r\n", max_size=20)
WANTED = st.lists(
    st.tuples(st.sampled_from(["a", "b", "\n", "ab", "b\n", " "]), st.text("ab\n", max_size=3)), max_size=5
)


@given(TEXTS, WANTED)
def test_spans_say_what_is_new_and_the_rest_is_as_it_was(text, wanted):
    try:
        before, after, spans = replacements.apply_edits(text, [Edit(*one, places=0) for one in wanted])
    except FilesError:
        return
    assert before == text
    rebuilt, at, reached = "", 0, 0
    for start, end, new_start, new_end in spans:
        assert at <= start <= end
        assert reached <= new_start <= new_end
        rebuilt += before[at:start]
        assert len(rebuilt) == new_start
        rebuilt += after[new_start:new_end]
        at, reached = end, new_end
    assert rebuilt + before[at:] == after


@given(TEXTS.map(lambda text: text.replace("\r", "")), WANTED)
def test_edits_are_those_of_a_simple_model(text, wanted):
    model, made = text, []
    for old, new in wanted:
        if old in model:
            model = model.replace(old, new)
            made.append((old, new, 0))
    if made:
        assert apply_edits(text, made) == model
        assert apply_edits(text.replace("\n", "\r\n"), made) == model.replace("\n", "\r\n") or "\n" not in text


@given(st.text("ab \r\n", max_size=30), st.data())
def test_bytes_outside_the_changed_lines_stay(text, data):
    seen = text.replace("\r\n", "\n")
    # A CR before a CRLF would read as a line end of the edit itself.
    assume("\r\n" not in seen)
    start = data.draw(st.integers(0, len(seen)))
    end = data.draw(st.integers(start, len(seen)))
    try:
        edited = apply_edits(text, [(seen[start:end], "X")])
    except FilesError:
        return
    assert edited.replace("\r\n", "\n") == seen[:start] + "X" + seen[end:]

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


def test_an_edit_replaces_the_one_match():
    assert apply_edits("a b c", [("b", "x")]) == "a x c"


def test_edits_build_on_each_other():
    assert apply_edits("a", [("a", "b"), ("b", "c")]) == "c"


def test_an_old_text_that_is_not_there_is_refused_with_the_nearest_line():
    error = refused("alpha\nbeta gamma\n", ("beta gama", "x"))
    assert error.code == "no_match"
    assert "line 2: 'beta gamma'" in error.suggestion


def test_f4_several_matches_are_refused_with_their_lines():
    error = refused("x\ny\nx\n", ("x", "z"))
    assert (error.code, "lines 1, 3" in error.reason) == ("ambiguous_match", True)


def test_overlapping_matches_count():
    assert refused("aaa", ("aa", "b")).code == "ambiguous_match"


def test_very_many_matches_are_not_all_listed():
    shown = "at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"
    assert refused("x\n" * 10, ("x", "z")).reason == f"edit 1: the old text matches 10 places, {shown}"
    more = f"edit 1: the old text matches more than 10 places, {shown}, ..."
    assert refused("x\n" * 100_000, ("x", "z")).reason == more


@pytest.mark.parametrize("wanted", [[], [("", "x")], [("a", "b"), ("", "x")]])
def test_f5_empty_edits_are_refused(wanted):
    assert refused("a", *wanted).code == "bad_edit"


def test_the_error_tells_which_edit():
    assert refused("a", ("a", "b"), ("a", "c")).reason.startswith("edit 2:")


def test_f2_f3_a_crlf_file_stays_crlf():
    assert apply_edits("a\r\nb\r\nc\r\n", [("a\nb\n", "a\nx\ny\n")]) == "a\r\nx\r\ny\r\nc\r\n"


def test_an_edit_written_with_crlf_fits_an_lf_file():
    assert apply_edits("a\nb\n", [("a\r\nb", "a\r\nx")]) == "a\nx\n"


def test_untouched_lines_of_a_mixed_file_stay():
    assert apply_edits("a\r\nb\nc\r\nd\n", [("a\nb\nc\nd\n", "a\nB\nc\nd\n")]) == "a\r\nB\nc\r\nd\n"


def test_what_replaces_the_first_line_gets_its_line_end():
    assert apply_edits("\r\na\nb\nc\n", [("\na\n", "x\ny\n")]) == "x\r\ny\nb\nc\n"


def test_deleting_a_line():
    assert apply_edits("a\r\nb\r\nc\r\n", [("b\n", "")]) == "a\r\nc\r\n"


def test_other_indentation_matches_and_is_kept():
    text = "def f():\n\tif x:\n\t\treturn 1\n"
    edited = apply_edits(text, [("if x:\n    return 1", "if y:\n    return 2\nelse:\n    return 3")])
    assert edited == "def f():\n\tif y:\n\t    return 2\n\telse:\n\t    return 3\n"


def test_a_line_indented_less_than_the_first():
    assert apply_edits("    a\n  b\n", [("      a\n    b\n", "      x\n    y\n")]) == "    x\n  y\n"


def test_trailing_white_space_does_not_matter():
    assert apply_edits("a  \nb\nc", [("a\nb", "x")]) == "x\nc"


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_last_line_matches_with_other_indentation(end):
    assert apply_edits(f"a\n  b{end}", [("\tb", "\tc")]) == f"a\n  c{end}"


def test_a_loose_match_must_be_the_only_one():
    assert refused("  a\n   a\n", ("\ta", "b")).code == "ambiguous_match"


def test_white_space_alone_does_not_match_loosely():
    assert refused("\n\n\na", ("   \n  ", "b")).code == "no_match"


def test_an_exact_match_wins_over_loose_ones():
    assert apply_edits(" a\n  a", [("  a", "b")]) == " a\nb"


@pytest.mark.timeout(10)
def test_repetitive_texts_take_linear_time():
    assert refused("a\n" * 200_000, (" a\n" * 10_000 + " b", "x")).code == "no_match"


def test_an_edit_of_as_many_places_as_it_says():
    assert apply_edits("x\ny\nx\n", [("x", "z", 2)]) == "z\ny\nz\n"
    assert apply_edits("aaaaa", [("aa", "b", 2)]) == "bba"


def test_an_edit_of_all_places():
    assert apply_edits("x" * 1_000, [("x", "yx", 0)]) == "yx" * 1_000
    assert apply_edits("  a\n\ta\nb\n", [("    a\n", "    c\n", 0)]) == "  c\n\tc\nb\n"


@pytest.mark.parametrize("places", [1, 3, 2**63 - 1, 10**30])
def test_another_number_of_places_is_refused_with_their_lines(places):
    error = refused("x\ny\nx\n", ("x", "z", places))
    assert error.code == ("ambiguous_match" if places == 1 else "wrong_count")
    assert "matches 2 places, at lines 1, 3" in error.reason


def test_no_place_is_not_any_number_of_places():
    assert refused("x", ("y", "z", 0)).code == "no_match"


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

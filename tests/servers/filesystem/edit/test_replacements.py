"""Matching and replacement of the old text of an edit."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from servers.filesystem.edit import replacements, text
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.errors import FilesError


def apply_edits(text, edits, path=""):
    return replacements.apply_edits(text, [Edit(*edit) for edit in edits], path).after


def refused(text, *edits):
    with pytest.raises(FilesError) as caught:
        apply_edits(text, edits, "f")
    return caught.value


DEFINED = "def f():\n\tif x:\n\t\treturn 1\n"
RETURNS = ("if x:\n    return 1", "if y:\n    return 2\nelse:\n    return 3")
EDITED = {
    "the one match": ("a b c", [("b", "x")], "a x c"),
    "one upon the other": ("a", [("a", "b"), ("b", "c")], "c"),
    "CRLF stays": ("a\r\nb\r\nc\r\n", [("a\nb\n", "a\nx\ny\n")], "a\r\nx\r\ny\r\nc\r\n"),
    "written with CRLF": ("a\nb\n", [("a\r\nb", "a\r\nx")], "a\nx\n"),
    "CR stays": ("a\rb\rc\r", [("a\nb\n", "a\nx\ny\n")], "a\rx\ry\rc\r"),
    "written with CR": ("a\rb\rc\r", [("a\rb", "a\rx")], "a\rx\rc\r"),
    "mixed line ends": ("a\r\nb\nc\r\nd\n", [("a\nb\nc\nd\n", "a\nB\nc\nd\n")], "a\r\nB\nc\r\nd\n"),
    "the line end of the first line": ("\r\na\nb\nc\n", [("\na\n", "x\ny\n")], "x\r\ny\nb\nc\n"),
    "a line goes": ("a\r\nb\r\nc\r\n", [("b\n", "")], "a\r\nc\r\n"),
    "other indentation": (DEFINED, [RETURNS], "def f():\n\tif y:\n\t\treturn 2\n\telse:\n\t\treturn 3\n"),
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


def test_edits_match_and_keep_indentation_and_line_ends():
    results = {what: apply_edits(text, edits) for what, (text, edits, _) in EDITED.items()}
    assert results == {what: expected for what, (*_, expected) in EDITED.items()}


def test_a_missing_old_text_is_refused_with_the_nearest_line():
    error = refused("alpha\nbeta gamma\n", ("beta gama", "x"))
    assert error.code == "no_match"
    assert "The nearest is line 2: 'beta gamma', not 'beta gama'." in error.suggestion


MAKEFILE = "all:\n\tcc a.c\n\tcc b.c\n"
PYTHON = "def f(x):\n  if x:\n    return 1\n  return 2\n"
YAML = "a:\n  b:\n    c: 1\n    d: 2\n"
CLASS = "class A:\n\tdef f(self):\n\t\treturn 1\n\n\tdef g(self):\n\t\treturn 2\n"
TOLERATED = {
    "a Makefile with spaces": (
        MAKEFILE,
        "all:\n    cc a.c\n",
        "all:\n    cc a.c -O2\n",
        "\tcc a.c\n",
        "\tcc a.c -O2\n",
    ),
    "four spaces for two": (
        PYTHON,
        "    if x:\n        return 1\n",
        "    if x:\n        y = x\n        return y\n",
        "    return 1\n",
        "    y = x\n    return y\n",
    ),
    "YAML with four": (YAML, "a:\n    b:\n        c: 1\n", "a:\n    b:\n        c: 3\n", "c: 1", "c: 3"),
    "a deeper line": (
        CLASS,
        "    def g(self):\n        return 2\n",
        "    def g(self):\n        if self:\n            return 2\n        return 3\n",
        "\t\treturn 2\n",
        "\t\tif self:\n\t\t\treturn 2\n\t\treturn 3\n",
    ),
    "moved to the left": (PYTHON, "if x:\n  return 1\n", "if not x:\n  return 1\n", "if x:", "if not x:"),
    "a line less deep": (
        CLASS,
        "        return 2\n",
        "        return 3\n\n    def h(self):\n        return 4\n",
        "\t\treturn 2\n",
        "\t\treturn 3\n\n\tdef h(self):\n\t\treturn 4\n",
    ),
    "no indentation": ("def f():\n    x = 1\n", "x = 1", "x = 1\ny = 2", "x = 1\n", "x = 1\n    y = 2\n"),
    "no line is left": ("def f():\n    x = 1\n    y\n", "x = 1\n", "", "    x = 1\n", ""),
    "half of it": ("def f():\n  x = 1\n\n", " x = 1\n\n", " x = 1\n y = 2\n\n", "x = 1\n", "x = 1\n  y = 2\n"),
    "whitespace at the ends of lines": ("a \nb\nc\n", "a\nb\n", "a\nB\n", "b\n", "B\n"),
    "an empty line behind the end": ("a\n  b\n", "b\n\n", "c\n", "b", "c"),
    "line ends that differ": ("\ta\r\n\tb\n\tc\r\n", "  a\n  b\n  c\n", "  a\n  b\n  d\n", "c\r\n", "d\r\n"),
}


@pytest.mark.parametrize(("text", "old", "new", "was", "now"), TOLERATED.values(), ids=TOLERATED)
def test_a_tolerant_match_uses_the_indentation_of_the_file(text, old, new, was, now):
    edited = replacements.apply_edits(text, [Edit(old, new)])
    assert edited.after == text.replace(was, now)
    assert len(edited.tolerated) == 1
    assert edited.tolerated[0].startswith("edit 1 matched, ignoring ")


def test_an_exact_match_is_not_reported_as_tolerated():
    for old, new in (("x = 1", "x = 1\n    y = 2"), ("x = 1 ", "z\ny "), ("x = 1 # x\n    y", "x\n    z")):
        edited = replacements.apply_edits("if a:\n    x = 1 # x\n    y\n", [Edit(old, new)])
        assert (edited.after, edited.tolerated) == ("if a:\n    x = 1 # x\n    y\n".replace(old, new), [])
    assert replacements.apply_edits(CLASS, [Edit("\t\treturn 1\n", "\t\treturn 3\n")]).tolerated == []


REFUSED = {
    "a dedent that the file does not have": (PYTHON, "    if x:\n        return 1\n        return 2\n", "x\n"),
    "a dedent that only the file has": ("if x:\n  a\n  b\n", "    if x:\n        a\n    b\n", "x\n"),
    "two depths that are one": ("\ta\n\tb\n", "  a\n    b\n", "x\n"),
    "one line that is wrong": ("        a\n    b\n", "        a\n      b\n", "        a\n    c\n"),
    "deeper for less deep": ("    a\n  b\n", " a\n  b\n", "x\n"),
    "a depth that can't be told": ("\ta\n", "  a\n", "  a\n   b\n \tc\n"),
    "a depth between two": ("a\n\tb\n", " a\n    b\n", "  c\n"),
    "as little as the first, which is indented": ("def f():\n  x\ny\n", "x\ny\n", "x\nz\ny\n"),
    "a line that would be indented twice": ("x\n    a\nb\n", "a\nb\n", "    a\n    c\nb\n"),
}


@pytest.mark.parametrize(("text", "old", "new"), REFUSED.values(), ids=REFUSED)
def test_inconsistent_indentation_does_not_match(text, old, new):
    assert refused(text, (old, new)).code == "no_match"


HINTS = {
    "indentation": (
        PYTHON,
        "  if x:\n    return 1\n    return 2\n",
        "lines 2-4: line 4 is indented by 2 spaces, not 4 spaces.",
    ),
    "a word": (CLASS, "\tdef g(self):\n\t\treturn 3\n", "lines 5-6: line 6 is 'return 2', not 'return 3'."),
    "a line more": (CLASS, "\tdef g(self):\n\t\tx = 1\n\t\treturn 2\n", "lines 5-7: 'x = 1' is missing."),
    "a line less": ("one\ntwo\nthree\nfour\nfive\n", "two\nfour\nfive\n", "lines 3-5: line 3 is 'three', not 'two'."),
    "an empty line less": ("one\n\ntwo\n", "one\ntwo\n", "lines 1-2: line 2 is '', not 'two'."),
    "far down": (
        "x = 1\n" * 9_000 + "alpha = beta\n",
        "alpha = bet\n",
        "line 9001: 'alpha = beta', not 'alpha = bet'.",
    ),
    "backslashes, which are copied": (
        'path = "C:\\\\a\'b"\n',
        'path = "C:\\a\'b"\n',
        """line 1: 'path = "C:\\\\a'b"', not 'path = "C:\\a'b"'.""",
    ),
    "what can't be seen": ("in\xa0current list\n", "in current list\n", "line 1: 'in\\xa0current list', not 'in cur"),
    "a long line": ("word " * 100, "word " * 99 + "wort", "line 1: 'word word"),
}


@pytest.mark.parametrize(("text", "old", "hint"), HINTS.values(), ids=HINTS)
def test_a_hint_names_the_nearest_lines_and_the_difference(text, old, hint):
    suggestion = refused(text, (old, "x")).suggestion
    assert f"The nearest is {hint}" in suggestion
    assert len(suggestion) < 800


def test_a_text_without_similar_lines_gets_no_hint():
    assert refused("alpha\nbeta\n", ("qqq www\nzzz\n", "x")).suggestion == (
        "Read the file again and copy the old text exactly."
    )


@pytest.mark.timeout(20)
def test_a_hint_in_a_large_repetitive_file_is_quick():
    text = "".join(f"value_{i % 97} = call(value, {i % 13})\n" for i in range(200_000))
    assert refused(text, ("value_5 = call(value, 77)\n" * 150, "x")).code == "no_match"


def test_several_matches_are_refused_with_at_most_ten_line_numbers():
    error = refused("x\ny\nx\n", ("x", "z"))
    assert (error.code, "lines 1, 3" in error.reason) == ("ambiguous_match", True)
    assert refused("aaa", ("aa", "b")).code == "ambiguous_match"  # they overlap
    shown = "at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"
    assert refused("x\n" * 10, ("x", "z")).reason == f"edit 1: the old text matches 10 places, {shown}"
    more = f"edit 1: the old text matches more than 10 places, {shown}, ..."
    assert refused("x\n" * 100_000, ("x", "z")).reason == more
    assert refused("x" * 100, ("x", "z")).reason.endswith("more than 10 places, at lines 1, ...")


def test_empty_edits_are_refused():
    for edits in ([], [("", "x")], [("a", "b"), ("", "x")]):
        assert refused("a", *edits).code == "bad_edit"


def test_an_error_names_the_number_of_the_edit():
    assert refused("a", ("a", "b"), ("a", "c")).reason.startswith("edit 2:")


def test_a_tolerant_match_must_be_unique_and_more_than_white_space():
    assert refused("  a\n   a\n", ("\ta", "b")).code == "ambiguous_match"
    assert refused("\n\n\na", ("   \n  ", "b")).code == "no_match"
    assert refused("x", ("y", "z", 0)).code == "no_match"


@pytest.mark.timeout(10)
def test_a_tolerant_match_in_a_repetitive_text_takes_linear_time():
    assert refused("a\n" * 200_000, (" a\n" * 10_000 + " b", "x")).code == "no_match"


def test_a_wrong_count_is_refused_with_the_lines_of_the_matches():
    for places in (1, 3, 2**63 - 1, 10**30):
        error = refused("x\ny\nx\n", ("x", "z", places))
        assert error.code == ("ambiguous_match" if places == 1 else "wrong_count")
        assert "matches 2 places, at lines 1, 3" in error.reason


def test_too_many_matches_are_refused(monkeypatch):
    monkeypatch.setattr(replacements, "MAX_PLACES", 100)
    assert "more than 100 places" in refused("x" * 101, ("x", "y", 0)).reason


TEXTS = st.text("ab \r\n", max_size=20)
WANTED = st.lists(
    st.tuples(st.sampled_from(["a", "b", "\n", "ab", "b\n", " "]), st.text("ab\n", max_size=3)), max_size=5
)


@given(TEXTS, WANTED)
def test_spans_cover_all_changes_of_the_text(text, edits):
    try:
        before, after, spans, _ = replacements.apply_edits(text, [Edit(*edit, places=0) for edit in edits])
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
def test_edits_agree_with_plain_replacement(text, edits):
    model, made = text, []
    for old, new in edits:
        # Deleting a whole line deletes its indentation too.
        if old in model and "\n" not in new and (new.strip() or not old.endswith("\n")):
            model = model.replace(old, new)
            made.append((old, new, 0))
    if made:
        assert apply_edits(text, made) == model
        assert apply_edits(text.replace("\n", "\r\n"), made) == model.replace("\n", "\r\n") or "\n" not in text


@given(st.text("ab \r\n", max_size=30), st.data())
def test_an_edit_keeps_the_text_outside_the_changed_lines(text, data):
    seen = text.replace("\r\n", "\n")
    # A CR before a CRLF would read as a line end of the edit itself.
    assume("\r\n" not in seen)
    start = data.draw(st.integers(0, len(seen)))
    end = data.draw(st.integers(start, len(seen)))
    # Whole lines without part of their indentation are matched differently.
    assume(not seen[:start].rpartition("\n")[2].isspace())
    try:
        edited = apply_edits(text, [(seen[start:end], "X")])
    except FilesError:
        return
    assert edited.replace("\r\n", "\n") == seen[:start] + "X" + seen[end:]


def test_a_hint_escapes_accents_that_look_alike():
    with pytest.raises(FilesError) as caught:
        apply_edits("cafe\u0301\n", [("caf\u00e9", "", 1)])
    assert "'cafe\\u0301', not 'caf\\xe9'" in caught.value.suggestion


def test_the_changes_of_many_edits_are_merged_in_few_steps(monkeypatch):
    merged = []
    composed = text._compose
    monkeypatch.setattr(
        text, "_compose", lambda earlier, later: merged.append(len(earlier) + len(later)) or composed(earlier, later)
    )
    lines = [f"line {number} of it\n" for number in range(1_000)]
    edits = [Edit(f"line {number} ", f"LINE {number} ") for number in range(1_000)]
    edited = replacements.apply_edits("".join(lines), edits)
    assert edited.after == "".join(lines).replace("line", "LINE")
    assert len(edited.spans) == 1_000
    assert sum(merged) < 20_000  # merging each with all before it would take 500,000

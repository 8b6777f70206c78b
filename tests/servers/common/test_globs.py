"""Globs: matches, cost, and subtrees without matches."""

import fnmatch
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.common.globs import Glob
from shared.coded_errors import PathError


def matches(pattern, path):
    return Glob([pattern]).matches(path.split("/"))


MATCH = [
    *(("*.py", "a.py"), ("*.py", "a/b/c.py"), ("*", ".hidden"), ("a/*.py", "a/b.py"), ("**/*.py", "b.py")),
    *(("a/**/b", "a/b"), ("a/**/b", "a/x/y/b"), ("a/**", "a/x/y"), ("**", "a/b"), ("a/**/**/b", "a/b")),
    *(("[ab]?.txt", "ax.txt"), ("[!a].txt", "b.txt"), ("{a,b}.py", "x/b.py"), ("{src,{lib,doc}}/*", "doc/x")),
    *(("{a}", "{a}"), ("{a", "{a"), ("./a/b", "a/b"), ("a*", "a\nb")),
    *(
        ("**/[id].tsx", "app/[id].tsx"),
        ("[id].tsx", "d.tsx"),
        (r"\[id\].tsx", "app/[id].tsx"),
        ("a[", "a["),
        ("a]", "a]"),
    ),
    *(("app/[...slug]/*", "app/[...slug]/page.tsx"), ("[[a]]", "[[a]]"), ("[[a]", "["), (r"\*", "*"), (r"a\?", "a?")),
    *(
        (r"\a", "a"),
        (r"\\", "\\"),
        (r"a\b", r"a\b"),
        (r"a\b", "ab"),
        ("a\\", "a\\"),
        (r"[\]a]", "]"),
        (r"[\]a]", "a"),
    ),
    *(("[]a]", "]"), ("[^a]", "b"), ("[!^]", "a"), (r"\{a,b\}", "{a,b}"), (r"{a\,b,c}", "a,b"), (r"{a\,b,c}", "c")),
    *((r"{\{,x}", "{"), ("[a-c]", "b"), (r"[\a]", "a"), (r"\[*\].md", "[x].md"), ("[!]a]", "b"), (r"[\\]", "\\")),
    *(("caf\xe9/*", "cafe\u0301/a"), ("*cafe\u0301*", "a/caf\xe9.txt"), ("[\xe9].md", "e\u0301.md")),
    *(("\u212a.txt", "\u212a.txt"), ("\u212a.txt", "K.txt")),
]
NO_MATCH = [
    *(("*.py", "a.PY"), ("a/*.py", "a/b/c.py"), ("a/*.py", "x/a/b.py")),
    *(("a/**", "a"), ("a?b", "a/b"), ("a", "ab")),
    *((r"\[id\].tsx", "i.tsx"), (r"\*", "a"), (r"a\?", "ab"), (r"\{a,b\}", "a"), ("[^a]", "a"), ("[!]a]", "]")),
    *((r"\\", "a"), (r"\[*\].md", "x.md"), (r"{a\,b,c}", "a"), ("[id].tsx", "id.tsx"), (r"\[id\].tsx", "id.tsx")),
]
BAD = ["", "/a", "../a", "a/../b", "/", "a" * 2_000, "{a,b}" * 20, "{" + "a," * 99 + "}", "\0"]


def test_patterns_match_the_listed_paths_only():
    assert [row for row in MATCH if not matches(*row)] == []
    assert [row for row in NO_MATCH if matches(*row)] == []


def test_invalid_patterns_are_refused():
    for pattern in BAD:
        with pytest.raises(PathError) as caught:
            Glob([pattern])
        assert caught.value.code == "bad_pattern", pattern


def test_too_many_patterns_are_refused():
    with pytest.raises(PathError):
        Glob(str(i) for i in range(100))


@pytest.mark.parametrize(
    "pattern", ["*a" * 400 + "b", "{" * 1_000, "{a}" * 300, "**/" * 300 + "b", "**/a/" * 60 + "b"]
)
def test_pattern_bombs_are_matched_quickly(pattern):
    start = time.process_time()
    assert not Glob([pattern]).matches(["a" * 255] * 20)
    assert time.process_time() - start < 1


def test_an_empty_glob_matches_nothing():
    glob = Glob([])
    assert not glob.matches(["a"])
    assert not glob.can_match_below(glob.start)


def test_a_subtree_without_possible_matches_is_detected():
    glob = Glob(["src/*.py"])
    assert glob.can_match_below(glob.step(glob.start, "src"))
    assert not glob.can_match_below(glob.step(glob.start, "lib"))


@given(st.text("ab*?[]!", min_size=1, max_size=8), st.text("ab", min_size=1, max_size=8))
def test_names_match_as_in_fnmatch(pattern, name):
    expected = pattern != "**" and fnmatch.fnmatchcase(name, pattern)
    assert matches(pattern, name) == (expected or pattern == "**")

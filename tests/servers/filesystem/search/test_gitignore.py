"""Searches that respect .gitignore files."""

import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.filesystem.errors import FilesError
from servers.filesystem.search.files import Scope, SearchProgress, search_files
from servers.filesystem.search.gitignore import Rules
from servers.filesystem.search.page import Page


@pytest.fixture
def search(files, root):
    def call(pattern="*", start=".", **scope):
        page = Page(1_000, sys.maxsize)
        return search_files(files, files.roots.place(start), Scope(pattern, **scope), page, SearchProgress())

    return call


def make(root, ignored="", *paths):
    (root / ".gitignore").write_text(ignored)
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def paths(result):
    """The paths of the matches, without .gitignore files and directories."""
    return [m["path"] for m in result["matches"] if m["kind"] == "file" and not m["path"].endswith(".gitignore")]


def test_ignored_entries_are_omitted_and_counted(root, search):
    rules = "build/\n!\n[z-a]\na\\\n*.log\n# no pattern\n\n" + "too long for re2" * 10_000
    make(root, rules, "a.py", "a.log", "build/b.py", "src/build/c.py", "src/d.log")
    result = search()
    assert (paths(result), result["ignored"]) == (["a.py"], 4)
    assert len(paths(search(include_ignored=True))) == 5
    # An ignored start is searched, and only ignored entries that match are counted.
    assert paths(search(start="build")) == ["b.py"]
    assert [search(pattern, start="src")["ignored"] for pattern in ("*.txt", "*.log")] == [1, 2]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (b"\xef\xbb\xbfa.log\r\nb.log", ["c.log"]),
        (b"a.log\nb.log\r", ["c.log"]),
        (b"c.log\ra.log\n", ["a.log", "b.log", "c.log"]),
        ("c.log\u2028a.log\x0cb.log\n".encode(), ["a.log", "b.log", "c.log"]),
    ],
)
def test_line_ends_and_the_byte_order_mark_are_read_as_in_git(rules, expected, root, search):
    make(root, "", "a.log", "b.log", "c.log")
    (root / ".gitignore").write_bytes(rules)
    assert paths(search()) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("*.tmp[[:digit:]]", ["[:a:]", "b.tmpx", "c.tmp_"]),
        ("*.tmp[![:alpha:]_]", ["[:a:]", "b.tmpx", "c.tmp_"]),
        ("*.tmp[[:upper:]_x]", ["[:a:]", "a.tmp1"]),
        (r"\[:a:]", ["a.tmp1", "b.tmpx", "c.tmp_"]),
        ("[[:nonsense:]]*", ["[:a:]", "a.tmp1", "b.tmpx", "c.tmp_"]),
        ("[[a&&b]*", ["c.tmp_"]),
    ],
)
def test_named_classes_and_brackets_in_a_set_are_read_as_in_git(rule, expected, root, search):
    make(root, rule, "a.tmp1", "b.tmpx", "c.tmp_", "[:a:]")
    assert paths(search()) == expected


def test_the_innermost_matching_gitignore_decides(root, search):
    make(root, "*.log\n/top\n", "a.log", "top", "in/a.log", "in/b.log", "in/top", "in/deep/b.log")
    (root / "in" / ".gitignore").write_text("!b.log\ndeep/b.log\n")
    assert paths(search()) == ["in/b.log", "in/top"]


def test_a_later_line_overrides_an_earlier_one(root, search):
    names = "".join(f"name{number}\n" for number in range(300))
    make(root, f"*.log\n{names}!keep.log\nname299\n!name299\n", "a.log", "keep.log", "name0", "name299")
    assert paths(search()) == ["keep.log", "name299"]


def test_gitignore_files_above_the_start_apply(root, search):
    make(root, "*.log\n/in/x\n", "in/a.log", "in/a.py", "in/x")
    assert paths(search(start="in")) == ["a.py"]


def test_a_nested_repository_has_its_own_rules_and_git_data_is_omitted(root, search):
    make(root, "*.log\n", "inner/a.log", "inner/.git/config", "a.log")
    result = search()
    assert (paths(result), result["ignored"]) == (["inner/a.log"], 1)
    assert paths(search(start="inner")) == ["a.log"]
    assert paths(search(start="inner", include_ignored=True)) == ["a.log", ".git/config"]


def test_undecodable_names_match_gitignore_patterns(root, search):
    make(root, "*.log\n", "\udce9.log", "\udce9.py")
    assert paths(search()) == [f"\\xe9.py (file://{root}/%E9.py)"]


def test_a_gitignore_that_is_a_link_or_directory_is_ignored(root, search, outside):
    (outside / "rules").write_text("*\n")
    (root / "a").touch()
    (root / ".gitignore").symlink_to(outside / "rules")
    assert paths(search()) == ["a"]
    (root / "b").mkdir()
    (root / "b" / ".gitignore").mkdir()
    (root / "b" / "c").touch()
    assert paths(search()) == ["a", "b/c"]


def test_a_gitignore_pattern_of_many_stars_is_quick(root, search):
    make(root, "*a" * 100 + "b\n", "a" * 200)
    assert len(paths(search())) == 1


@pytest.mark.parametrize("package", ["re2", "pathspec"])
def test_a_tree_with_gitignore_without_the_packages_names_them(root, search, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    (root / "a").touch()
    assert paths(search()) == ["a"]
    make(root, "b\n")
    with pytest.raises(FilesError, match=r"pathspec.*includeIgnored") as caught:
        search()
    assert caught.value.code == "not_installed"
    assert paths(search(include_ignored=True)) == ["a"]


WORDS = st.sampled_from(["a", "b", "ab", "é", "*", "**", "?", "[ab]", "/", ".", "!", "\\\\ ", "#", "a.b", "\udce9"])
LINES = st.lists(st.lists(WORDS, max_size=5).map("".join), max_size=5).map("\n".join)
NAMES = st.sampled_from(["a", "b", "ab", "é", "a.b", " ", "a\nb", "\udce9"])
ENTRIES = st.lists(st.tuples(NAMES, st.sampled_from(["file", "directory"])), max_size=4)


@pytest.mark.slow
@given(outer=LINES, inner=LINES, entries=ENTRIES)
def test_the_combined_match_of_all_names_overlooks_no_ignored_name(outer, inner, entries):
    rules = Rules()
    for lines in (outer, inner):
        rules = rules.extend([".gitignore"], lambda *_, text=lines: os.fsencode(text)).enter("b")
        ignored = [rules.ignores(name, kind == "directory") for name, kind in entries]
        assert rules.may_ignore(entries) or not any(ignored)


def test_the_combined_match_of_all_names_detects_that_none_is_ignored():
    rules = Rules().extend([".gitignore"], lambda *_: b"*.pyc\n/build\ndist/\n!keep\n").enter("in")
    entries = [("a.py", "file"), ("build", "directory"), ("dist", "file"), ("keep", "file")]
    assert not rules.may_ignore(entries)
    assert all(rules.may_ignore([*entries, entry]) for entry in (("b.pyc", "file"), ("dist", "directory")))

"""Trees of directories and their truncation."""

import os
import sys

import pytest

from servers.filesystem.errors import FilesError
from servers.filesystem.search.files import SearchProgress
from servers.filesystem.search.summaries import tree_text
from servers.filesystem.search.tree import Limits, directory_tree
from tests.privileges import modes_enforced


@pytest.fixture
def tree(files, at):
    def call(exclude=(), max_depth=10, max_entries=100, max_bytes=sys.maxsize, with_ignored=True, path="."):
        limits = Limits(max_depth, max_entries, max_bytes, with_ignored)
        return directory_tree(files, at(path), exclude, limits, SearchProgress())

    return call


def shape(node):
    return {node["name"]: [shape(child) for child in node["children"]]} if "children" in node else node["name"]


def test_a_tree_is_nested(root, tree):
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "c").touch()
    (root / "empty").mkdir()
    result = tree()
    assert shape(result["root"]) == {"root": [{"a": [{"b": ["c"]}]}, {"empty": []}]}
    assert (result["entries"], result["truncated"]) == (4, False)


def test_a_tree_does_not_follow_links(root, outside, tree):
    (root / "out").symlink_to(outside)
    (root / "self").symlink_to(".")
    assert tree()["root"]["children"] == [{"name": "out", "kind": "symlink"}, {"name": "self", "kind": "symlink"}]


def test_excluded_directories_are_omitted_with_their_contents(root, tree):
    (root / "node_modules" / "x").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "src" / "a.pyc").touch()
    assert shape(tree(["node_modules", "*.pyc"])["root"]) == {"root": [{"src": []}]}
    assert shape(tree(["src/*.pyc", "node_modules/**"])["root"]) == {"root": [{"node_modules": []}, {"src": []}]}


def test_a_branch_beyond_the_longest_path_is_truncated(root, tree):
    descriptor = os.open(root, os.O_RDONLY)
    for _ in range(100):
        os.mkdir("d" * 100, dir_fd=descriptor)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    result = tree(max_depth=10_000)
    assert (result["entries"], result["truncated"]) == (64, True)


def test_truncated_directories_are_marked(root, tree):
    (root / "a" / "b").mkdir(parents=True)
    (root / "c").mkdir()
    result = tree(max_depth=2, max_entries=3)
    assert result["root"] == {
        "name": "root",
        "kind": "directory",
        "children": [
            {"name": "a", "kind": "directory", "children": [{"name": "b", "kind": "directory", "cut": True}]},
            {"name": "c", "kind": "directory", "cut": True},
        ],
    }
    assert tree_text(result).splitlines()[:4] == ["root/", "  a/", "    b/ ...", "  c/ ..."]


def test_a_tree_stays_within_its_bytes(root, tree):
    for number in range(100):
        (root / f"{number:0100}").touch()
    result = tree(max_entries=1_000, max_bytes=5_000)
    assert 20 < result["entries"] < 50
    assert (result["truncated"], result["root"]["cut"]) == (True, True)


def test_names_in_a_tree_are_escaped_and_the_uri_given(root, tree):
    (root / os.fsdecode(b"a\n  caf\xe9")).touch()
    uri = f"file://{root}/a%0A%20%20caf%E9"
    assert tree_text(tree()).splitlines() == ["root/", f"  a\\n  caf\\xe9 ({uri})"]


def test_a_cancelled_tree_is_truncated_and_a_tree_of_a_file_refused(files, root, at):
    (root / "a").touch()
    with pytest.raises(FilesError) as caught:
        directory_tree(files, at("a"), [], Limits(1, 1, 1_000), SearchProgress())
    assert caught.value.code == "not_a_directory"
    control = SearchProgress()
    control.cancel()
    result = directory_tree(files, at("."), [], Limits(9, 9, 1_000), control)
    assert (result["entries"], result["truncated"]) == (0, True)


def test_an_unreadable_directory_has_an_error_code(root, tree):
    (root / "a").mkdir(mode=0)
    with modes_enforced():
        assert tree()["root"]["children"] == [{"name": "a", "kind": "directory", "error": "permission_denied"}]


def test_ignored_entries_are_omitted_on_request(root, tree):
    for name in (".git", "src/build", "node_modules/x", "src/kept"):
        (root / name).mkdir(parents=True)
    for name in ("a.log", "src/b.log", "src/keep.log", "src/a.py", "node_modules/x/y"):
        (root / name).touch()
    (root / ".gitignore").write_text("node_modules/\n*.log\n")
    (root / "src/.gitignore").write_text("/build\n!keep.log\n")
    result = tree(with_ignored=False)
    inside = {"src": [".gitignore", "a.py", "keep.log", {"kept": []}]}
    assert shape(result["root"]) == {"root": [".gitignore", inside]}
    assert (result["ignored"], result["entries"]) == (4, 6)
    assert tree_text(result).endswith("\n[4 entries left out by .gitignore; includeIgnored shows them]")
    # Rules above the start apply too.
    assert shape(tree(with_ignored=False, path="src")["root"]) == inside
    everything = tree()
    assert (everything["ignored"], everything["entries"]) == (0, 13)
    assert "left out" not in tree_text(everything)

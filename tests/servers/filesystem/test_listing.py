import os

import pytest

from servers.filesystem.access.roots import path_from_uri
from servers.filesystem.errors import FilesError
from servers.filesystem.finding.listing import directory_tree, info, list_directory


@pytest.fixture
def listed(files, at):
    return lambda limit=100: list_directory(files, at("."), limit)


@pytest.fixture
def tree(files, at):
    def call(exclude=(), max_depth=10, max_entries=100):
        return directory_tree(files, at("."), exclude, max_depth, max_entries)

    return call


def shape(node):
    return node.name if node.children is None else {node.name: [shape(child) for child in node.children]}


def test_entries_are_sorted_with_kind_and_size(root, listed):
    (root / "b").write_text("four")
    (root / "a").mkdir()
    os.mkfifo(root / "c")
    entries = [(e.name, e.kind, e.size) for e in listed().entries]
    assert entries == [("a", "directory", None), ("b", "file", 4), ("c", "other", None)]


def test_entries_have_their_time_and_uri(root, listed):
    (root / "a b").touch()
    os.utime(root / "a b", (1, 2.5))
    entry = listed().entries[0]
    assert (entry.modified, entry.uri) == (2.5, f"file://{root}/a%20b")


def test_a_link_is_a_link_and_its_target_stays_unknown(root, outside, listed):
    (root / "link").symlink_to(outside / "secret")
    (root / "none").symlink_to("nothing")
    assert [(e.kind, e.size) for e in listed().entries] == [("symlink", None)] * 2


def test_the_limit_keeps_the_first_and_tells(root, listed):
    for name in "dbca":
        (root / name).touch()
    found = listed(limit=2)
    assert ([e.name for e in found.entries], found.total, found.truncated) == (["a", "b"], 4, True)


def test_a_name_cannot_forge_lines(root, listed):
    (root / "a\n[FILE] b").touch()
    assert listed().entries[0].name == "a\\n[FILE] b"


def test_an_undecodable_name_is_shown_and_reachable(root, listed):
    name = os.fsdecode(b"caf\xe9")
    (root / name).touch()
    entry = listed().entries[0]
    assert (entry.name, entry.uri[-6:]) == ("caf\\xe9", "caf%E9")
    assert path_from_uri(entry.uri) == f"{root}/{name}"


def test_listing_through_a_link_out_is_refused(files, root, outside, at):
    (root / "link").symlink_to(outside)
    with pytest.raises(FilesError, match="outside the allowed"):
        list_directory(files, at("link"), 10)


def test_a_tree_is_nested(root, tree):
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "c").touch()
    found = tree()
    assert shape(found.root) == {"root": [{"a": [{"b": ["c"]}]}]}
    assert (found.entries, found.truncated) == (3, False)


def test_a_tree_does_not_follow_links(root, outside, tree):
    (root / "out").symlink_to(outside)
    (root / "self").symlink_to(".")
    assert [(n.name, n.kind, n.children) for n in tree().root.children] == [
        ("out", "symlink", None),
        ("self", "symlink", None),
    ]


def test_excluded_directories_are_left_out_with_all_below(root, tree):
    (root / "node_modules" / "x").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "src" / "a.pyc").touch()
    assert shape(tree(["node_modules", "*.pyc"]).root) == {"root": [{"src": []}]}
    assert shape(tree(["src/*.pyc", "node_modules/**"]).root) == {"root": [{"node_modules": []}, {"src": []}]}


def test_a_tree_ends_at_its_depth(root, tree):
    (root / "a" / "b").mkdir(parents=True)
    found = tree(max_depth=1)
    assert (shape(found.root), found.truncated) == ({"root": ["a"]}, True)


def test_a_cut_tree_is_complete_near_the_start(root, tree):
    for name in ("a/1/2", "b", "c"):
        (root / name).mkdir(parents=True)
    found = tree(max_entries=3)
    assert (shape(found.root), found.truncated) == ({"root": [{"a": []}, {"b": []}, {"c": []}]}, True)


def test_an_empty_tree_has_children(tree):
    assert tree().root.children == ()


def test_deep_trees_end(root, tree):
    descriptor = os.open(root, os.O_RDONLY)
    for _ in range(100):
        os.mkdir("d" * 100, dir_fd=descriptor)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    assert tree(max_depth=10_000).truncated


def test_a_tree_of_a_file_is_refused(files, root, at):
    (root / "file").touch()
    with pytest.raises(FilesError) as caught:
        directory_tree(files, at("file"), [], 1, 1)
    assert caught.value.code == "not_a_directory"


def test_info_of_a_file(files, root, at):
    (root / "a.txt").write_text("four")
    (root / "a.txt").chmod(0o640)
    found = info(files, at("a.txt"))
    assert (found.kind, found.size, found.permissions) == ("file", 4, "-rw-r-----")
    assert (found.mime, found.path, found.uri) == ("text/plain", f"{root}/a.txt", f"file://{root}/a.txt")


def test_info_of_a_directory_and_of_a_link(files, root, outside, at):
    (root / "link").symlink_to(outside / "secret")
    assert (info(files, at(".")).kind, info(files, at(".")).mime) == ("directory", None)
    assert info(files, at("link")).kind == "symlink"


def test_info_of_nothing(files, at):
    with pytest.raises(FilesError, match="does not exist"):
        info(files, at("none"))

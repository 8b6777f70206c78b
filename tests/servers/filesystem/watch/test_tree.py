"""Watched trees: the events of a check, and the entries remembered."""

import os

import pytest

from servers.common.globs import Glob
from servers.filesystem.watch.tree import EntryQuota, Tree
from shared.program.files.atomic import temporary_name


@pytest.fixture
def tree(files, at):
    """A tree after its first check."""

    def make(pattern="**", path=".", quota=None):
        made = Tree(files, at(path), Glob([pattern]), quota or EntryQuota())
        assert not made.check(None)
        return made

    return make


def check_events(tree, *noticed):
    """The events of a check of everything, or of these paths."""
    tree.check(set(map(str, noticed)) or None)
    return [(event.kind, "/".join(event.place.parts)) for event in tree.take_events()]


def test_a_check_reports_created_modified_and_deleted_files(tree, root):
    (root / "there").touch()
    watched = tree()
    (root / "there").chmod(0o600)
    assert check_events(watched) == []
    (root / "file").touch()
    assert check_events(watched) == [("created", "file")]
    (root / "file").write_text("a")
    assert check_events(watched) == [("modified", "file")]
    (root / "file").unlink()
    assert check_events(watched) == [("deleted", "file")]


def test_a_check_with_paths_reads_only_those(tree, root):
    watched = tree()
    for name in "ab":
        (root / name).touch()
    assert check_events(watched, root / "b") == [("created", "b")]


def test_a_new_directory_is_reported_with_its_contents_and_watched(tree, root):
    watched = tree()
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").touch()
    assert check_events(watched, root / "a") == [("created", "a"), ("created", "a/b"), ("created", "a/b/file")]
    assert set(watched.directories) == {f"{root}", f"{root}/a", f"{root}/a/b"}


def test_a_removed_directory_is_reported_with_its_contents(tree, root):
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").touch()
    watched = tree()
    (root / "a").rename(root.parent / "away")
    assert sorted(check_events(watched, root / "a")) == [
        ("deleted", "a"),
        ("deleted", "a/b"),
        ("deleted", "a/b/file"),
    ]
    assert watched.directories == (f"{root}",)


def test_only_entries_that_match_the_glob_are_reported_and_remembered(tree, root):
    watched = tree("src/**/*.py")
    for path in ("src/x/a.py", "src/x/a.txt", "other/a.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    assert check_events(watched) == [("created", "src/x/a.py")]
    assert f"{root}/other" not in watched.directories


def test_tool_directories_temporary_names_and_denied_entries_are_omitted(tree, root):
    watched, temporary = tree(), temporary_name()
    for name in (".git", "node_modules", ".ssh", temporary, "src"):
        (root / name).mkdir()
        (root / name / "file").touch()
    (root / ".env").write_text("PASSWORD=1")
    assert check_events(watched) == [("created", "src"), ("created", "src/file")]
    assert check_events(watched, root / ".env", root / temporary) == []


def test_links_are_not_followed_and_reported_if_retargeted(tree, root, outside):
    watched = tree()
    (root / "link").symlink_to(outside)
    assert check_events(watched) == [("created", "link")]
    assert watched.directories == (f"{root}",)
    (root / "new").symlink_to("b")
    (root / "new").replace(root / "link")
    assert check_events(watched, root / "link") == [("modified", "link")]


def test_a_tree_below_a_link_retargeted_outside_is_deleted(tree, root, outside):
    (root / "dir").mkdir()
    (root / "dir" / "file").touch()
    (root / "link").symlink_to("dir")
    watched = tree(path="link")
    (root / "link").unlink()
    (root / "link").symlink_to(outside)
    assert check_events(watched) == [("deleted", "link/file")]
    (outside / "new").touch()
    assert check_events(watched) == []


def test_a_tree_that_does_not_exist_yet_is_watched(tree, root):
    watched = tree(path="a/b")
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").touch()
    assert check_events(watched, root / "a") == [("created", "a/b/file")]


def test_undecodable_names_are_reported(tree, root):
    watched = tree()
    open(os.fsencode(root) + b"/\xff", "w").close()
    assert check_events(watched) == [("created", "\udcff")]


def test_remembered_entries_are_limited_by_the_quota(tree, root):
    watched = tree(quota=EntryQuota(2))
    for name in "abc":
        (root / name).touch()
    assert check_events(watched) == [("created", "a"), ("created", "b")]
    assert watched.is_full


def test_entries_over_the_scan_limit_are_not_reported_as_deleted(tree, root, monkeypatch):
    for name in "abc":
        (root / name).touch()
    watched = tree()
    monkeypatch.setattr("servers.filesystem.watch.tree.MAX_SCANNED", 2)
    assert check_events(watched) == []
    assert watched.is_full


def test_removed_directories_and_closed_trees_return_their_quota(tree, root):
    quota = EntryQuota(3)
    (root / "a").mkdir()
    for name in ("a/file", "b"):
        (root / name).touch()
    watched = tree(quota=quota)
    assert not quota.take()
    (root / "a").rename(root.parent / "away")
    check_events(watched)
    assert [quota.take() for _ in range(3)] == [True, True, False]
    watched.close()
    assert quota.take()

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


def happened(tree, *noticed):
    """The events of a check of everything, or of these paths."""
    tree.check(set(map(str, noticed)) or None)
    return [(event.kind, "/".join(event.place.parts)) for event in tree.take_events()]


def test_a_check_reports_created_modified_and_deleted_files(tree, root):
    (root / "there").touch()
    seen = tree()
    (root / "there").chmod(0o600)
    assert happened(seen) == []
    (root / "file").touch()
    assert happened(seen) == [("created", "file")]
    (root / "file").write_text("a")
    assert happened(seen) == [("modified", "file")]
    (root / "file").unlink()
    assert happened(seen) == [("deleted", "file")]


def test_a_check_with_paths_reads_only_those(tree, root):
    seen = tree()
    for name in "ab":
        (root / name).touch()
    assert happened(seen, root / "b") == [("created", "b")]


def test_a_new_directory_is_reported_with_its_contents_and_watched(tree, root):
    seen = tree()
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").touch()
    assert happened(seen, root / "a") == [("created", "a"), ("created", "a/b"), ("created", "a/b/file")]
    assert set(seen.directories) == {f"{root}", f"{root}/a", f"{root}/a/b"}


def test_a_removed_directory_is_reported_with_its_contents(tree, root):
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").touch()
    seen = tree()
    (root / "a").rename(root.parent / "away")
    assert sorted(happened(seen, root / "a")) == [("deleted", "a"), ("deleted", "a/b"), ("deleted", "a/b/file")]
    assert seen.directories == (f"{root}",)


def test_only_entries_that_match_the_glob_are_reported_and_remembered(tree, root):
    seen = tree("src/**/*.py")
    for path in ("src/x/a.py", "src/x/a.txt", "other/a.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    assert happened(seen) == [("created", "src/x/a.py")]
    assert f"{root}/other" not in seen.directories


def test_tool_directories_temporary_names_and_denied_entries_are_omitted(tree, root):
    seen, temporary = tree(), temporary_name()
    for name in (".git", "node_modules", ".ssh", temporary, "src"):
        (root / name).mkdir()
        (root / name / "file").touch()
    (root / ".env").write_text("PASSWORD=1")
    assert happened(seen) == [("created", "src"), ("created", "src/file")]
    assert happened(seen, root / ".env", root / temporary) == []


def test_links_are_not_followed_and_reported_if_retargeted(tree, root, outside):
    seen = tree()
    (root / "link").symlink_to(outside)
    assert happened(seen) == [("created", "link")]
    assert seen.directories == (f"{root}",)
    (root / "new").symlink_to("b")
    (root / "new").replace(root / "link")
    assert happened(seen, root / "link") == [("modified", "link")]


def test_a_tree_below_a_link_retargeted_outside_is_deleted(tree, root, outside):
    (root / "dir").mkdir()
    (root / "dir" / "file").touch()
    (root / "link").symlink_to("dir")
    seen = tree(path="link")
    (root / "link").unlink()
    (root / "link").symlink_to(outside)
    assert happened(seen) == [("deleted", "link/file")]
    (outside / "new").touch()
    assert happened(seen) == []


def test_a_tree_that_does_not_exist_yet_is_watched(tree, root):
    seen = tree(path="a/b")
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").touch()
    assert happened(seen, root / "a") == [("created", "a/b/file")]


def test_undecodable_names_are_reported(tree, root):
    seen = tree()
    open(os.fsencode(root) + b"/\xff", "w").close()
    assert happened(seen) == [("created", "\udcff")]


def test_remembered_entries_are_limited_by_the_quota(tree, root):
    seen = tree(quota=EntryQuota(2))
    for name in "abc":
        (root / name).touch()
    assert happened(seen) == [("created", "a"), ("created", "b")]
    assert seen.full


def test_entries_over_the_scan_limit_are_not_reported_as_deleted(tree, root, monkeypatch):
    for name in "abc":
        (root / name).touch()
    seen = tree()
    monkeypatch.setattr("servers.filesystem.watch.tree.MAX_SCANNED", 2)
    assert happened(seen) == []
    assert seen.full


def test_removed_directories_and_closed_trees_return_their_quota(tree, root):
    quota = EntryQuota(3)
    (root / "a").mkdir()
    for name in ("a/file", "b"):
        (root / name).touch()
    seen = tree(quota=quota)
    assert not quota.take()
    (root / "a").rename(root.parent / "away")
    happened(seen)
    assert [quota.take() for _ in range(3)] == [True, True, False]
    seen.close()
    assert quota.take()

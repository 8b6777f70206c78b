import os

import pytest

from servers.filesystem.errors import FilesError
from servers.filesystem.finding.searching import Search, search_files


@pytest.fixture
def search(files, root, at):
    for name in ("b.py", "a/c.py", "a/.d.py", "a/x/e.py", "a/x/f.txt", "z/g.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()

    def call(pattern, *exclude, start=".", cancelled=lambda: False, **limits):
        return search_files(files, at(start), Search(pattern, exclude, **limits), cancelled)

    return call


def paths(found):
    return [match.path for match in found.matches]


def test_a_name_is_found_at_any_depth(search):
    assert paths(search("*.py")) == ["b.py", "a/.d.py", "a/c.py", "a/x/e.py", "z/g.py"]


def test_paths_are_relative_to_the_start(search, root):
    found = search("x/*", start="a")
    assert paths(found) == ["x/e.py", "x/f.txt"]
    assert found.matches[0].uri == f"file://{root}/a/x/e.py"


def test_directories_are_found_too(search):
    assert [(m.path, m.kind) for m in search("?").matches] == [
        ("a", "directory"),
        ("z", "directory"),
        ("a/x", "directory"),
    ]


def test_excluded_directories_are_not_entered(search):
    assert paths(search("*.py", "a/x", "z")) == ["b.py", "a/.d.py", "a/c.py"]


def test_the_limit(search):
    found = search("*.py", limit=2)
    assert (len(found.matches), found.truncated, found.stopped) == (2, True, "limit")
    assert not search("*.txt", limit=1).truncated


def test_the_budget(search):
    found = search("**/*.py", max_steps=5)
    assert (found.truncated, found.stopped) == (True, "budget")


def test_cancellation(search):
    assert search("*", cancelled=lambda: True).stopped == "cancelled"


def test_links_are_not_followed(search, root, outside):
    (root / "out").symlink_to(outside)
    (root / "loop").symlink_to(".")
    assert paths(search("secret")) == []
    assert [m.kind for m in search("loop").matches] == ["symlink"]


def test_a_start_behind_a_link(search, root):
    (root / "link").symlink_to("a")
    assert paths(search("c.py", start="link")) == ["c.py"]


def test_names_cannot_forge_lines(search, root):
    (root / "a\nb").touch()
    assert paths(search("a?b")) == ["a\\nb"]


def test_a_start_that_is_no_directory(search):
    with pytest.raises(FilesError):
        search("*", start="b.py")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_directories_are_counted(search, root):
    (root / "a").chmod(0)
    assert search("*.py").unreadable == 1
    (root / "a").chmod(0o700)


def test_no_descriptor_is_left(search, no_leak):
    for _ in range(20):
        search("**/*.py")
        search("*", limit=1)

"""Names that look alike, and suggestions for missing paths."""

import pytest

from servers.common.files.denylist import Denylist
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.filesystem.search import look_alikes
from servers.filesystem.search.look_alikes import look_alike, suggest_path

ALIKE = [
    ("Screenshot 2026-11-29 at 10.01.23 PM.png", "Screenshot 2026-11-29 at 10.01.23\u202fPM.png"),
    ("a b", "a\u00a0b"),
    ("a b", " a  b "),
    ("caf\u00e9.txt", "cafe\u0301.txt"),
    ("Anna's notes", "Anna\u2019s notes"),
    ('"a" b', "\u201ca\u201d b"),
    ("a-b", "a\u2013b"),
    ("README.md", "readme.md"),
    ("strasse", "stra\u00dfe"),
    ("file.txt", "\ufb01le.txt"),
    ("ab", "a\u200bb"),
    ("a...", "a\u2026"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_names_that_look_alike_are_equal(one, other):
    assert look_alike(one) == look_alike(other)


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("ab", "a b"), ("a.txt", "a.text"), ("cafe", "caf\u00e9")])
def test_names_that_do_not_look_alike_are_different(one, other):
    assert look_alike(one) != look_alike(other)


@pytest.fixture
def suggest(files):
    return lambda path: suggest_path(files, files.roots.place(path))


@pytest.mark.parametrize(("missing", "existing"), ALIKE)
def test_a_missing_path_suggests_the_uri_of_a_look_alike(root, files, suggest, missing, existing):
    (root / existing).touch()
    (root / "other").touch()
    if (root / missing).exists():
        pytest.skip("this file system takes the two for one name: run it where it does not")
    assert suggest(missing) == f"Did you mean {files.roots.uri(files.roots.place(existing))}?"


def test_look_alike_parent_directories_are_suggested(root, files, suggest):
    there = root / "My\u00a0Folder" / "In" / "caf\u00e9"
    there.parent.mkdir(parents=True)
    there.touch()
    assert suggest("my folder/in/cafe\u0301") == f"Did you mean {there.as_uri()}?"
    assert suggest("my folder/in/nothing") == ""


def test_several_look_alikes_are_all_suggested(root, suggest):
    there = [root / "A b", root / "a\u00a0b"]
    for path in there:
        path.touch()
    assert suggest("a b") == f"Did you mean one of {there[0].as_uri()}, {there[1].as_uri()}?"


def test_the_nearest_names_are_suggested_without_a_look_alike(root, suggest):
    for name in ("report.txt", "reports.txt", "my report.txt", "zebra", "report.tex", "report.text"):
        (root / name).touch()
    assert suggest("reprot.txt") == "The nearest names there: report.txt, reports.txt, report.text."
    assert suggest("report.tx/more") == "The nearest names there: report.txt, report.tex, reports.txt."
    assert suggest("q") == ""


def test_existing_paths_and_paths_without_a_parent_suggest_nothing(root, suggest):
    (root / "file").touch()
    (root / "link").symlink_to("nothing")
    for path in ("file", "link", "file/x", ".", "empty/way"):
        assert suggest(path) == ""


def test_denied_names_are_not_suggested(root):
    (root / "Secret").mkdir()
    (root / "Secret" / "file").touch()
    files = RootedFiles(Roots([root], denylist=Denylist(["Secret"])))
    for path in ("secre", "Secret/fil", "secre/file"):
        assert suggest_path(files, files.roots.place(path)) == ""
    files.close()


def test_only_some_names_of_a_large_directory_are_compared(root, suggest, monkeypatch):
    monkeypatch.setattr(look_alikes, "MAX_NAMES", 3)
    for number in range(9):
        (root / f"file {number}").touch()
    assert suggest("file 10").count(",") < 3

"""What was answered is on the disk: the bytes of a file, and then the directory that has its name."""

import stat

import pytest

from servers.filesystem.edit.delete import delete
from servers.filesystem.edit.move import copy, move
from servers.filesystem.edit.write import create_directory, write_file
from tests import disk
from tests.servers.filesystem.editing_files import edit_file


@pytest.fixture
def synced(root, monkeypatch):
    """What is synced, where there is an old file already."""
    (root / "old").write_text("old")
    return disk.synced(monkeypatch)


def test_a_new_file(files, at, synced):
    write_file(files, at("new"), "text")
    assert synced == [4, ["new", "old"]]


def test_a_file_that_is_written_anew(files, at, synced):
    write_file(files, at("old"), "text")
    assert synced == [4, ["old"]]


def test_what_is_added_to_a_file(files, at, synced):
    write_file(files, at("old"), "er", "append")
    assert synced == [5]


def test_an_edit(files, at, synced):
    edit_file(files, at("old"), [("old", "newer")])
    size, names = synced
    assert (size, "old" in names) == (5, True)


def test_what_another_program_adds_during_an_edit(files, at, root, synced):
    def add():
        with (root / "old").open("a") as file:
            file.write("!")

    edit_file(files, at("old"), [("old", "newer")], check=add)
    assert (synced[:-1], (root / "old").read_text()) == ([5, 6], "newer!")


def test_a_file_that_is_moved_into_another_directory(files, at, root, synced):
    (root / "below").mkdir()
    move(files, at("old"), at("below/new"))
    assert synced == [["new"], ["below"]]


def test_a_copy(files, at, synced):
    copy(files, at("old"), at("new"))
    assert synced == [3, ["new", "old"]]


def test_a_file_that_is_deleted(files, at, synced):
    delete(files, at("old"))
    assert synced == [[]]


def test_directories_that_are_made(files, at, synced):
    create_directory(files, at("a/b"))
    create_directory(files, at("a/b/c"))
    assert synced == [["a", "old"], ["b"], ["c"]]


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_nobody_reads_a_file_before_it_has_the_permissions_of_the_one_it_replaces(
    files, at, root, synced, monkeypatch, mode
):
    (root / "old").chmod(mode)
    made = disk.made(monkeypatch)
    write_file(files, at("old"), "text")
    assert (made, stat.S_IMODE((root / "old").stat().st_mode)) == ([0o600], mode)

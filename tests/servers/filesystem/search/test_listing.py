"""Listings of directories in pages, and the description of an entry."""

import os
import sys

import pytest

from servers.common.files.names import path_from_uri
from servers.filesystem.errors import FilesError
from servers.filesystem.search.listing import info, list_directory
from servers.filesystem.search.page import Page
from servers.filesystem.search.summaries import sized_text
from shared.program.files.entries import etag_of


@pytest.fixture
def listed(files, at):
    def call(limit=100, cursor=None, by_size=False, max_bytes=sys.maxsize):
        return list_directory(files, at("."), Page(limit, max_bytes, cursor), by_size)

    return call


def test_entries_are_sorted_with_kind_and_size(root, listed):
    (root / "b").write_text("four")
    (root / "a").mkdir()
    os.mkfifo(root / "c d")
    os.utime(root / "b", (1, 2.5))
    entries = [(e.name, e.kind, e.size) for e in listed().entries]
    assert entries == [("a", "directory", None), ("b", "file", 4), ("c d", "other", None)]
    assert [(e.modified, e.uri) for e in listed().entries[1:2]] == [(2.5, f"file://{root}/b")]
    assert listed().entries[2].uri == f"file://{root}/c%20d"
    assert (listed(3).truncated, listed(3).cursor) == (False, None)


def test_links_are_listed_without_target_and_not_followed_outside(files, root, outside, at, listed):
    (root / "link").symlink_to(outside)
    (root / "none").symlink_to("nothing")
    assert [(e.kind, e.size) for e in listed().entries] == [("symlink", None)] * 2
    with pytest.raises(FilesError, match="outside the allowed"):
        list_directory(files, at("link"), Page(10, sys.maxsize))


@pytest.mark.parametrize("by_size", [False, True])
def test_denied_entries_are_listed_by_name_only(root, listed, by_size):
    (root / ".env").write_text("x" * 100)
    (root / "a").write_text("12")
    entries = {e.name: (e.kind, e.size, e.modified) for e in listed(by_size=by_size).entries}
    assert entries[".env"] == ("file", None, None)
    # The order does not reveal the size either.
    assert list(entries) == (["a", ".env"] if by_size else [".env", "a"])


def test_names_are_escaped_and_their_uri_leads_back(root, listed):
    name = os.fsdecode(b"caf\xe9")
    for path in ("a\n[FILE] b", name):
        (root / path).touch()
    forged, entry = listed().entries
    assert forged.name == "a\\n[FILE] b"
    assert (entry.name, entry.uri[-6:]) == ("caf\\xe9", "caf%E9")
    assert path_from_uri(entry.uri) == f"{root}/{name}"


def pages(call):
    """Every entry of every page, and how many pages there are."""
    entries, count, cursor = [], 0, None
    while True:
        page = call(cursor)
        entries += page.entries
        count += 1
        if not page.truncated:
            return [entry.name for entry in entries], count
        cursor = page.cursor


def test_pages_continue_by_name_or_by_descending_size(root, listed):
    for name, size in (("a", 1), ("b", 3), ("c", 1), ("d", 2)):
        (root / name).write_bytes(b"x" * size)
    first = listed(limit=2)
    assert ([entry.name for entry in first.entries], first.total, first.truncated) == (["a", "b"], 4, True)
    assert pages(lambda cursor: listed(2, cursor)) == (["a", "b", "c", "d"], 2)
    assert pages(lambda cursor: listed(1, cursor, by_size=True)) == (["b", "d", "a", "c"], 4)


def test_the_total_of_a_page_is_labelled_as_such(root, listed):
    for name in ("a", "b", "c"):
        (root / name).write_text(name)
    assert "\nTotal: 3 files, 0 directories, 3 bytes" in sized_text(listed(by_size=True))
    first = listed(2, by_size=True)
    last = listed(2, first.cursor, by_size=True)
    assert "\nOn this page: 2 files" in sized_text(first)
    assert "\nOn this page: 1 file," in sized_text(last)


def test_a_page_continues_after_a_removed_last_entry(root, listed):
    for name in ("a", "b", "c"):
        (root / name).touch()
    cursor = listed(2).cursor
    (root / "b").unlink()
    (root / "aa").touch()
    assert [entry.name for entry in listed(2, cursor).entries] == ["c"]


def test_a_page_stays_within_its_bytes(root, listed):
    for number in range(50):
        (root / f"{number:0100}").touch()
    names, count = pages(lambda cursor: listed(100, cursor, max_bytes=3_000))
    assert len(names) == len(set(names)) == 50
    assert count > 2


def test_invalid_cursors_are_refused(listed):
    for cursor in ("", "x", "MA", "MAA", "é"):
        with pytest.raises(FilesError) as caught:
            listed(1, cursor)
        assert caught.value.code == "bad_cursor"


def test_info_describes_files_directories_and_links(files, root, outside, at):
    (root / "a.txt").write_text("four")
    (root / "a.txt").chmod(0o640)
    (root / "link").symlink_to(outside / "secret")
    description = info(files, at("a.txt"))
    assert (description.kind, description.size, description.permissions) == ("file", 4, "-rw-r-----")
    assert (description.mime, description.path) == ("text/plain", f"{root}/a.txt")
    assert (info(files, at(".")).kind, info(files, at(".")).mime) == ("directory", None)
    assert info(files, at("link")).kind == "symlink"
    assert info(files, at("a.txt")).etag == description.etag == etag_of((root / "a.txt").stat())


def test_names_only_lists_the_same_entries_without_sizes_and_times(files, root, at, listed):
    (root / "a b").write_text("12")
    (root / "d").mkdir()
    listing = list_directory(files, at("."), Page(100, sys.maxsize), names_only=True)
    assert [entry[:2] + entry[4:] for entry in map(_fields, listing.entries)] == [
        entry[:2] + entry[4:] for entry in map(_fields, listed().entries)
    ]
    assert {(entry.size, entry.modified) for entry in listing.entries} == {(None, None)}


def _fields(entry):
    return entry.name, entry.kind, entry.size, entry.modified, entry.uri

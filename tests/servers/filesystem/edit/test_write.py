"""Writing whole files, appending to files, and creating directories."""

import errno
import os
import resource
import subprocess
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from servers.common.files import locks
from servers.common.files.locks import lock_entries
from servers.common.files.rooted_files import RootedFiles
from servers.filesystem.edit import write as module
from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.edit.write import WriteOptions, create_directory, write_file
from servers.filesystem.errors import FilesError
from servers.filesystem.history.recording import History, HistoryOptions, Recorder
from servers.filesystem.undo.undoing import find_changes, undo_change
from shared.program.files import atomic
from shared.program.files.entries import Entry, etag_of
from tests.servers.filesystem.conftest import by_path, swapping
from tests.servers.filesystem.editing_files import append_as_another, code


def test_new_empty_and_existing_files_are_written(root, write):
    for text, created in (("new", True), ("", False), ("newer", False)):
        written = write("file", text)
        assert (written.size, written.created, (root / "file").read_text()) == (len(text), created, text)


@pytest.mark.skipif(os.sep == "\\", reason="there a backslash stands between names: run it on Linux or macOS")
def test_a_name_may_end_in_a_backslash(root, write):
    (root / "old\\").touch()
    assert not write("old\\", "new").created


def test_writing_follows_links_inside_the_roots_only(root, outside, either):
    write = by_path(write_file, either)
    (root / "file").write_text("old")
    for name, target in {"link": "file", "out": outside / "new", "dir": outside, "dangling": "none"}.items():
        (root / name).symlink_to(target)
    write("link", "new")
    assert ((root / "link").is_symlink(), (root / "file").read_text()) == (True, "new")
    assert code(write, "out", "new") == code(write, "dir/new", "new") == "outside_roots"
    assert code(write, "dangling", "new") == "not_found"
    assert (os.listdir(outside), (root / "none").exists()) == (["secret"], False)


@pytest.mark.parametrize("mode", ["overwrite", "create", "append"])
def test_a_write_waits_for_another_writer_of_the_file(files, root, at, write, mode):
    with files.locate(at("file")) as entry, lock_entries(entry):
        writer = threading.Thread(target=write, args=("file", "new", mode))
        writer.start()
        # The lock has two users: this thread, which holds it, and the writer, which waits.
        while writer.is_alive() and locks._locks[locks._key(entry)].users < 2:
            time.sleep(0.001)
        assert os.listdir(root) == []
    writer.join(30)
    assert (root / "file").read_text() == "new"


def test_text_appended_while_the_file_is_replaced_is_in_the_new_file(root, write, monkeypatch):
    (root / "file").write_text("old\n")
    plain = module.sync

    def replaced(descriptor):
        monkeypatch.setattr(module, "sync", plain)
        (root / "theirs").write_text("theirs\n")
        (root / "theirs").replace(root / "file")
        plain(descriptor)

    monkeypatch.setattr(module, "sync", replaced)
    write("file", "mine\n", "append")
    assert (root / "file").read_text() == "theirs\nmine\n"


def test_directories_pipes_and_missing_parents_are_not_written(root, either):
    (root / "dir").mkdir()
    os.mkfifo(root / "pipe")
    write = by_path(write_file, either)
    assert code(write, "dir", "new") == code(write, ".", "new") == "not_a_file"
    assert code(write, "pipe", "new") == "special_file"
    assert code(write, "none/file", "new") == "not_found"


def test_read_only_files_and_files_with_hard_links_are_not_changed(root, write, edit):
    for name in ("file", "twin"):
        (root / name).write_text("old")
    (root / "file").chmod(0o444)
    (root / "other").hardlink_to(root / "twin")
    for name, expected in (("file", "read_only"), ("twin", "hard_links")):
        assert code(write, name, "new") == code(edit, name, ("old", "new")) == expected
        assert (root / name).read_text() == "old"


def test_protected_files_are_changed_if_the_operator_allows_it(root, write, edit):
    (root / "file").write_text("old")
    (root / "file").chmod(0o444)
    (root / "other").hardlink_to(root / "file")
    edit("file", ("old", "new"), protected=True)
    assert [(root / name).read_text() for name in ("file", "other")] == ["new", "old"]
    write("other", "newer", options=WriteOptions(protected=True))
    assert [(root / name).read_text() for name in ("file", "other")] == ["new", "newer"]
    assert (root / "file").stat().st_mode & 0o777 == 0o444


def test_create_refuses_existing_files_and_text_that_can_not_be_encoded(root, write):
    (root / "link").symlink_to("none")
    assert write("file", "one", "create").created
    assert code(write, "file", "two", "create") == code(write, "link", "two", "create") == "already_exists"
    assert code(write, "new", "\ud800") == "bad_edit"
    assert (sorted(os.listdir(root)), (root / "file").read_text()) == (["file", "link"], "one")


# Appending


def test_append_writes_to_the_same_inode(root, write):
    (root / "file").write_text("old\n")
    before = (root / "file").stat().st_ino
    assert [write(name, "new\n", "append").size for name in ("file", "none")] == [8, 4]
    assert (root / "file").read_text() == "old\nnew\n"
    assert (root / "file").stat().st_ino == before


def test_append_keeps_the_charset_and_line_ends_of_the_file(root, write):
    (root / "wide").write_bytes("\ufeffa\r\n".encode("utf-16-le"))
    (root / "latin").write_bytes("très fermé, à côté\n".encode("latin-1"))
    (root / "mac").write_bytes(b"a\rb\r")
    write("wide", "b\n", "append")
    write("latin", "été\n", "append")
    write("mac", "c\n", "append")
    (root / "unix").write_bytes(b"a\n")
    (root / "none").write_bytes(b"a")
    write("unix", "b\r\n", "append")
    write("none", "b\r\n", "append")
    assert (root / "wide").read_bytes() == "\ufeffa\r\nb\r\n".encode("utf-16-le")
    assert (root / "latin").read_bytes() == "très fermé, à côté\nété\n".encode("latin-1")
    assert (root / "mac").read_bytes() == b"a\rb\rc\r"
    assert [(root / name).read_bytes() for name in ("unix", "none")] == [b"a\nb\n", b"ab\r\n"]


def test_a_crlf_split_by_a_block_is_not_taken_for_a_cr_line_end(root, write):
    (root / "long").write_bytes(b"x" * 65_535 + b"\r\ny\r\n")
    write("long", "c\nd\n")
    assert (root / "long").read_bytes() == b"c\nd\n"


def test_append_keeps_cp1252_for_finnish_text(root, write):
    text = "Tämä on pitkä rivi, jossa on monta sanaa.\n" * 30
    (root / "file").write_bytes(text.encode("cp1252"))
    written = write("file", "Hyvää\n", "append")
    assert (root / "file").read_bytes() == f"{text}Hyvää\n".encode("cp1252")
    assert written.charset == "cp1252"


OVERWRITTEN = [
    ("a\r\n".encode("utf-8-sig"), "b\nc\n", "b\r\nc\r\n".encode("utf-8-sig")),
    ("\ufeffa\r\n".encode("utf-16-le"), "b\n", "\ufeffb\r\n".encode("utf-16-le")),
    ("\ufeffa\n".encode("utf-16-be"), "ü\n", "\ufeffü\n".encode("utf-16-be")),
    ("très fermé, à côté\n".encode("cp1252"), "été\n", "été\n".encode("cp1252")),
    (b"a\r\nb\r\n", "c\r\nd\n", b"c\r\nd\r\n"),
    (b"a\nb\n", "c\r\nd\r\n", b"c\r\nd\r\n"),
    (b"a\rb\r", "c\nd\n", b"c\rd\r"),
    (b"", "é\n", "é\n".encode()),
    (b"abc", "é\n", "é\n".encode()),
    (b"\x00\xff\x01", "é\n", "é\n".encode()),
    ("a\r\n".encode("utf-8-sig") * 30_000, "b\n", "b\r\n".encode("utf-8-sig")),
]


@pytest.mark.parametrize(("before", "text", "after"), OVERWRITTEN)
def test_overwrite_keeps_charset_byte_order_mark_and_line_ends(root, write, before, text, after):
    (root / "file").write_bytes(before)
    write("file", text)
    assert (root / "file").read_bytes() == after


def test_a_given_encoding_is_used_for_the_new_file(root, write):
    for encoding, data in (
        ("utf-8", "été\r\n".encode()),
        ("utf-8-sig", "été\r\n".encode("utf-8-sig")),
        ("utf-16", "\ufeffété\r\n".encode("utf-16-le")),
        ("iso8859-15", "été\r\n".encode("iso8859-15")),
    ):
        (root / "file").write_bytes("très fermé, à côté\r\n".encode("cp1252"))
        write("file", "été\n", options=WriteOptions(encoding=encoding))
        assert (root / "file").read_bytes() == data
    write("new", "été\n", "create", options=WriteOptions(encoding="cp1252"))
    assert (root / "new").read_bytes() == "été\n".encode("cp1252")
    (root / "file").write_bytes(b"caf\xe9\n")
    write("file", "5 €\n", "append", options=WriteOptions(encoding="iso8859-15"))
    assert (root / "file").read_bytes() == "café\n5 €\n".encode("iso8859-15")


def test_text_that_likely_charsets_encode_differently_is_not_written(root, write, edit):
    (root / "file").write_bytes(b"caf\xe9\n")
    assert code(write, "file", "5 €\n", "append") == code(write, "file", "5 €\n") == "unsure_charset"
    assert code(edit, "file", ("caf", "5 € caf")) == "unsure_charset"
    assert code(write, "file", "中\n") == code(write, "file", "中\n", "append") == "bad_edit"
    assert code(write, "file", "x", options=WriteOptions(encoding="no such")) == "bad_encoding"
    assert (root / "file").read_bytes() == b"caf\xe9\n"
    edit("file", ("caf", "5 € caf"), encoding="cp1252")
    assert (root / "file").read_bytes() == "5 € café\n".encode("cp1252")


def test_append_refuses_binary_and_large_files(root, write):
    (root / "data").write_bytes(b"\x00\xff")
    with (root / "large").open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    assert [code(write, name, "x", "append") for name in ("data", "large")] == ["not_text", "too_large"]


def test_an_append_without_room_on_the_disk_writes_nothing(root, write):
    (root / "file").write_text("old\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        assert code(write, "file", "x" * 100, "append") == "io_error"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (root / "file").read_text() == "old\n"


def test_short_writes_of_the_system_are_completed(root, write, monkeypatch):
    plain = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: plain(descriptor, data[:2]))
    write("file", "12345")
    write("file", "6789\n", "append")
    assert (root / "file").read_text() == "123456789\n"


def test_a_failed_append_keeps_what_others_appended_after_it(root, write, monkeypatch):
    (root / "file").write_text("old\n")
    plain, fits = os.write, iter([True, False])

    def write_some(descriptor, data):
        if next(fits):
            return plain(descriptor, data[:2])
        append_as_another(root / "file")
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "write", write_some)
    assert code(write, "file", "mine", "append") == "no_space"
    assert (root / "file").read_text() == "old\nmi, theirs"


# Directories


def test_directories_are_created_with_parents_and_through_inner_links_only(either, root, outside):
    for name, target in {"in": ".", "out": outside, "none": "nothing"}.items():
        (root / name).symlink_to(target)
    make = by_path(create_directory, either)
    assert [make("a/b/c"), make("a/b/c"), make("in/d")] == [True, False, True]
    assert (root / "a/b/c").is_dir()
    assert (root / "d").is_dir()
    assert (code(make, "out/a"), code(make, "none")) == ("outside_roots", "not_found")
    (root / "file").touch()
    assert code(make, "file") == code(make, "file/a") == "not_a_directory"


@pytest.mark.slow
def test_writing_into_a_directory_swapped_for_a_link_stays_inside_the_root(files, root, outside, at):
    (root / "dir").mkdir()
    (root / "link").symlink_to(outside)
    seen = set()
    with swapping(root):
        # Until both states were seen, however busy the machine.
        for i in count():
            seen.add(outcome(files, at(f"dir/{i % 9}")))
            if i > 2_000 and {"written", "outside_roots"} <= seen:
                break
    assert os.listdir(outside) == ["secret"]


def outcome(files, place):
    try:
        write_file(files, place, "x")
    except FilesError as error:
        return error.code
    return "written"


@pytest.fixture
def mounted(root: Path, tmp_path: Path) -> Iterator[Path]:
    """The file `file` of the root, a mount point."""
    (tmp_path / "elsewhere").write_text("old\n")
    (root / "file").touch()
    command = ["mount", "--bind", tmp_path / "elsewhere", root / "file"]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounts a file: run it where that is allowed")
    yield root / "file"
    subprocess.run(["umount", root / "file"], check=True)


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    opened = History(HistoryOptions(tmp_path / "undo", 1024 * 1024, 7))
    yield opened
    opened.close()


def edit(files: RootedFiles, old: str, new: str, *names: str, etag: str | None = None) -> str:
    """Make one edit in each of the files, and return the etag of the first."""
    requests = [FileEdits(files.roots.place(name), [Edit(old, new)], etag) for name in names]
    return edit_files(files, requests)[0].etag


def test_write_edit_and_undo_change_a_mounted_file_in_place(
    files: RootedFiles, root: Path, mounted: Path, history: History
) -> None:
    inode = mounted.stat().st_ino
    for text in ("longer than the old one\n", "short\n"):
        written = write_file(files, files.roots.place("file"), text)
        assert (mounted.read_text(), written.etag) == (text, etag_of(mounted.stat()))
    assert edit(files, "short", "x" * 100_000, "file") == etag_of(mounted.stat())
    recorder = Recorder(history)
    write_file(files, files.roots.place("file"), "new\n", recorder=recorder)
    assert not recorder.note
    undo_change(history, files, *find_changes(history, files, None, None))
    assert mounted.read_text() == "x" * 100_000 + "\n"
    assert (mounted.stat().st_ino, os.listdir(root)) == (inode, ["file"])


def test_a_mounted_file_is_restored_if_the_other_file_can_not_be_edited(
    files: RootedFiles, root: Path, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "other").write_text("old\n")
    overwrite = atomic.overwrite

    def overwritten(fresh: Entry, entry: Entry) -> None:
        overwrite(fresh, entry)
        # Another program replaces the other file as soon as the first is written.
        if mounted.read_text() == "new\n":
            (root / "theirs").write_text("theirs\n")
            (root / "theirs").replace(root / "other")

    monkeypatch.setattr("servers.common.files.exchange.overwrite", overwritten)
    etag = etag_of(mounted.stat()), etag_of((root / "other").stat())
    requests = [
        FileEdits(files.roots.place(name), [Edit("old", "new")], mark)
        for name, mark in zip(("file", "other"), etag, strict=True)
    ]
    assert code(edit_files, files, requests) == "changed"
    assert (mounted.read_text(), (root / "other").read_text()) == ("old\n", "theirs\n")


def test_a_simultaneous_write_to_a_mounted_file_is_not_overwritten(
    files: RootedFiles, mounted: Path, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    etag = etag_of(mounted.stat())
    prepared = atomic.prepare_replacement

    def prepared_late(*arguments: Any, **named: Any) -> Entry:
        mounted.write_text("theirs\n")
        return prepared(*arguments, **named)

    monkeypatch.setattr(atomic, "prepare_replacement", prepared_late)
    options = WriteOptions(etag)
    assert code(write_file, files, files.roots.place("file"), "new\n", "overwrite", options) == "changed"
    assert mounted.read_text() == "theirs\n"


def test_a_full_disk_leaves_a_mounted_file_unchanged(
    files: RootedFiles, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    assert code(edit, files, "old", "longer", "file") == "no_space"
    assert mounted.read_text() == "old\n"


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16"])
def test_an_overwrite_with_a_byte_order_mark_writes_one_mark(files, root, at, codec):
    (root / "a").write_bytes("old\n".encode(codec))
    write_file(files, at("a"), "\ufeffnew\n")
    assert (root / "a").read_bytes() == "new\n".encode(codec)

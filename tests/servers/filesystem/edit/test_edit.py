"""Edits of one file and of several, alone and with simultaneous writes of other programs."""

import errno
import os
import sys
import threading

import pytest

from servers.common.files import exchange
from servers.filesystem.edit import edit as editing
from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.edit.write import write_file
from servers.filesystem.errors import FilesError
from servers.filesystem.read.pages import read_text
from shared.program.files.entries import etag_of
from tests.servers.filesystem.editing_files import append_as_another, code, edit_file, replace_as_another


def test_an_edit_changes_the_file_and_returns_the_diff(root, edit):
    (root / "file").write_bytes(b"a\r\nb\r\n")
    result = edit("file", ("a\nb", "a\nc"))
    assert (root / "file").read_bytes() == b"a\r\nc\r\n"
    assert result.diff == "--- a/file\n+++ b/file\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n"
    assert (result.size, result.etag) == (6, etag_of((root / "file").stat()))


def test_an_edit_keeps_cr_line_ends_and_shows_them_as_lines(root, edit):
    (root / "file").write_bytes(b"a\rb\rc\r")
    result = edit("file", ("a\nb", "a\nB"))
    assert (root / "file").read_bytes() == b"a\rB\rc\r"
    assert result.diff == "--- a/file\n+++ b/file\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"


def test_an_edit_keeps_the_charset(root, edit):
    text = "Le café est fermé à midi.\nIl n'y a personne à côté.\n"
    (root / "file").write_bytes(text.encode("latin-1"))
    edit("file", ("fermé", "très fermé"))
    assert (root / "file").read_bytes() == text.replace("fermé", "très fermé").encode("latin-1")
    assert code(edit, "file", ("midi", "中")) == code(edit, "file", ("midi", "中"), dry_run=True) == "bad_edit"
    assert (root / "file").read_bytes() == text.replace("fermé", "très fermé").encode("latin-1")


def test_a_text_with_a_character_of_two_codes_is_read_but_not_edited(root, files, at, edit):
    text = "東京の天気は晴れです。\n" * 5
    data = text.encode("cp932") + b"\x87\x9a a\n"
    (root / "file").write_bytes(data)
    assert read_text(files, at("file"), 10_000).text == f"{text}∵ a\n"
    with pytest.raises(FilesError, match=r"two codes.*Specify encoding if the file is in another charset") as caught:
        edit("file", ("a", "b"))
    assert caught.value.code == "bad_edit"
    write_file(files, at("file"), "終わり\n", "append")
    assert (root / "file").read_bytes() == data + "終わり\n".encode("cp932")


def test_an_edit_keeps_the_byte_order_mark(root, edit):
    (root / "file").write_bytes(b"\xef\xbb\xbfa")
    edit("file", ("a", "b"))
    assert (root / "file").read_bytes() == b"\xef\xbb\xbfb"


def test_binary_large_special_and_missing_files_are_not_edited(root, edit):
    (root / "data").write_bytes(b"\x00\x01\xff a")
    (root / "text").write_text("a")
    with (root / "large").open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    os.mkfifo(root / "pipe")
    refused = {"data": "not_text", "large": "too_large", "pipe": "special_file", "none": "not_found"}
    assert {name: code(edit, name, ("a", "b")) for name in refused} == refused
    assert code(edit, "text", ("a", "\ud800")) == "bad_edit"
    assert ((root / "data").read_bytes(), (root / "text").read_text()) == (b"\x00\x01\xff a", "a")
    assert len(os.listdir(root)) == 4


def test_parallel_edits_are_all_applied(root, edit):
    (root / "link").symlink_to("file")
    (root / "file").write_text("".join(f"<{i}>\n" for i in range(30)))
    threads = [
        threading.Thread(target=edit, args=("link" if i % 2 else "file", (f"<{i}>", f"[{i}]"))) for i in range(30)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (root / "file").read_text() == "".join(f"[{i}]\n" for i in range(30))


class InterruptingText(str):
    """An old text that runs `act` once, while it is replaced, as another program would."""

    act = staticmethod(lambda: None)

    def replace(self, *arguments):
        InterruptingText.act()
        InterruptingText.act = staticmethod(lambda: None)
        return super().replace(*arguments)


@pytest.mark.parametrize(
    "interrupt", [replace_as_another, append_as_another, lambda file: file.write_text("theirs, a")]
)
def test_an_edit_keeps_simultaneous_writes_of_another_program(files, root, at, interrupt, no_leak):
    (root / "file").write_text("a")
    InterruptingText.act = staticmethod(lambda: interrupt(root / "file"))
    edit_file(files, at("file"), [(InterruptingText("a"), "b")])
    assert [path.name for path in root.iterdir()] == ["file"]
    assert (root / "file").read_text() in ("b, theirs", "theirs, b")


@pytest.mark.parametrize(
    "interrupt", [replace_as_another, append_as_another, lambda file: file.write_text("theirs, a")]
)
def test_an_edit_with_an_etag_refuses_a_simultaneous_change_of_another_program(files, root, at, interrupt):
    (root / "file").write_text("a")
    InterruptingText.act = staticmethod(lambda: interrupt(root / "file"))
    etag = etag_of((root / "file").stat())
    with pytest.raises(FilesError) as caught:
        edit_file(files, at("file"), [(InterruptingText("a"), "b")], etag=etag)
    assert caught.value.code == "changed"
    assert str(caught.value) == "file: has been changed by another program in the meantime. Read it again."
    assert [path.name for path in root.iterdir()] == ["file"]
    assert (root / "file").read_text() in ("a, theirs", "theirs, a")


def test_an_edit_that_no_longer_matches_after_another_write_is_refused(files, root, at):
    (root / "file").write_text("a")
    InterruptingText.act = staticmethod(lambda: (root / "file").write_text("theirs"))
    assert code(edit_file, files, at("file"), [(InterruptingText("a"), "b")]) == "no_match"
    assert (root / "file").read_text() == "theirs"


def test_an_addition_of_another_program_is_kept_after_a_read_error(files, root, at, monkeypatch, no_leak):
    (root / "file").write_text("a")
    plain, fails = os.pread, iter([True])

    def pread(*arguments):
        if next(fails, False):
            raise OSError(errno.EIO, "")
        return plain(*arguments)

    monkeypatch.setattr(os, "pread", pread)
    InterruptingText.act = staticmethod(lambda: append_as_another(root / "file"))
    edit_file(files, at("file"), [(InterruptingText("a"), "b")])
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "b, theirs")]


def without_exchange(monkeypatch, number, after=0):
    """Make the exchange of two names fail with this error number, after so many successes."""
    plain, left = exchange._renameat2(), iter([True] * after)
    monkeypatch.setattr(exchange, "_renameat2", lambda: lambda *names: plain(*names) if next(left, False) else number)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP])
def test_an_edit_is_a_checked_rename_where_names_can_not_be_exchanged(files, root, at, monkeypatch, number):
    without_exchange(monkeypatch, number)
    (root / "file").write_text("a")
    edit_file(files, at("file"), [("a", "b")])
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "b")]
    InterruptingText.act = staticmethod(lambda: (root / "file").write_text("bb"))
    etag = etag_of((root / "file").stat())
    with pytest.raises(FilesError) as caught:
        edit_file(files, at("file"), [(InterruptingText("b"), "c")], etag=etag)
    assert str(caught.value) == "file: has been changed by another program in the meantime. Read it again."
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "bb")]


def test_a_rename_restores_the_old_file_if_the_second_exchange_fails(files, root, at, monkeypatch):
    without_exchange(monkeypatch, errno.ENOSYS, after=1)
    (root / "file").write_text("a")
    InterruptingText.act = staticmethod(lambda: (root / "file").write_text("theirs, a"))
    etag = etag_of((root / "file").stat())
    assert code(edit_file, files, at("file"), [(InterruptingText("a"), "b")], etag=etag) == "changed"
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "theirs, a")]


def test_a_failed_exchange_keeps_the_old_file(files, root, at, monkeypatch):
    without_exchange(monkeypatch, errno.ENOSPC)
    (root / "file").write_text("a")
    assert code(edit_file, files, at("file"), [("a", "b")]) == "no_space"
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "a")]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells that a file is open elsewhere")
def test_lines_appended_through_an_open_descriptor_of_the_old_file_are_kept(root, files, at, monkeypatch):
    (root / "file").write_text("a\n")
    opened = (root / "file").open("a")

    def late(_seconds):
        opened.write("theirs\n")
        opened.close()

    monkeypatch.setattr(exchange.time, "sleep", late)
    edit_file(files, at("file"), [("a", "b")])
    assert opened.closed
    assert (root / "file").read_text() == "b\ntheirs\n"


@pytest.fixture
def three_files(root):
    for name in "abc":
        (root / name).write_text(name)
    return root


def edit_all_by(files):
    """Returns a function that appends "+" to each file; the old contents of a file are its name."""

    def run(names, **more):
        file_edits = [FileEdits(files.roots.place(name), [Edit(name[-1], name[-1] + "+")]) for name in names]
        return edit_files(files, file_edits, **more)

    return run


@pytest.fixture
def edit_all(files):
    return edit_all_by(files)


def texts(root):
    """The contents of all files by name, leftovers included."""
    return {path.name: path.read_text() for path in sorted(root.iterdir())}


OLD = {"a": "a", "b": "b", "c": "c"}
NEW = {"a": "a+", "b": "b+", "c": "c+"}


def test_several_files_are_edited_and_none_in_a_dry_run(three_files, edit_all):
    assert all("+" in result.diff for result in edit_all("abc", dry_run=True))
    assert texts(three_files) == OLD
    results = edit_all("abc")
    assert texts(three_files) == NEW
    assert [result.diff.splitlines()[0] for result in results] == ["--- a/a", "--- a/b", "--- a/c"]


def test_one_edit_without_a_match_changes_no_file(three_files, edit_all):
    (three_files / "c").write_text("other")
    assert code(edit_all, "abc") == "no_match"
    assert texts(three_files) == {**OLD, "c": "other"}


def test_a_file_named_twice_in_a_call_is_refused(three_files, edit_all):
    (three_files / "da").symlink_to("a")
    for names in (["a", "b", "a"], ["b", "a", "da"]):
        assert code(edit_all, names) == "bad_edit"
    assert texts(three_files) == {**OLD, "da": "a"}


def hook_replacements(monkeypatch, before=lambda name: None, after=lambda name: None):
    """Call hooks before and after each replacement: another program could not be timed this exactly."""
    plain = editing.exchange

    def exchange(old, new, *more):
        before(new.place.parts[-1])
        is_new = plain(old, new, *more)
        after(new.place.parts[-1])
        return is_new

    monkeypatch.setattr(editing, "exchange", exchange)


def failing_at(last, act=lambda: None):
    def fail(name):
        if name == last:
            act()
            raise OSError(5, "")

    return fail


def test_a_failed_replacement_restores_the_files_before_it(three_files, either, monkeypatch, no_leak):
    before = {name: (three_files / name).stat().st_ino for name in "ab"}
    hook_replacements(monkeypatch, failing_at("c"))
    assert code(edit_all_by(either), "abc") == "io_error"
    assert texts(three_files) == OLD
    assert {name: (three_files / name).stat().st_ino for name in "ab"} == before


def test_files_are_restored_from_copies_without_hard_links(three_files, edit_all, monkeypatch):
    def link(*arguments, **more):
        raise PermissionError(1, "")

    hook_replacements(monkeypatch, failing_at("c"))
    monkeypatch.setattr(os, "link", link)
    assert code(edit_all, "abc") == "io_error"
    assert texts(three_files) == OLD


def test_a_simultaneous_change_of_the_last_file_restores_the_others(three_files, edit_all, monkeypatch):
    hook_replacements(monkeypatch, after=lambda name: name == "a" and (three_files / "c").write_text("theirs"))
    # The edit is tried again on the new contents.
    assert code(edit_all, "abc") == "no_match"
    assert texts(three_files) == {**OLD, "c": "theirs"}


def test_restoring_keeps_what_another_program_wrote(three_files, edit_all, monkeypatch):
    def replace():
        (three_files / "new").write_text("theirs")
        (three_files / "new").replace(three_files / "a")

    hook_replacements(monkeypatch, failing_at("b", replace))
    assert code(edit_all, "ab") == "io_error"
    assert texts(three_files) == {**OLD, "a": "theirs"}


def test_the_total_size_of_edited_files_is_limited(three_files, edit_all, monkeypatch):
    monkeypatch.setattr(editing, "MAX_EDITED", 2)
    assert code(edit_all, "abc") == "too_large"


def test_edits_of_the_same_files_in_different_orders_do_not_deadlock(three_files, files):
    def run(names):
        for _ in range(10):
            file_edits = [FileEdits(files.roots.place(name), [Edit(name, name + "+")]) for name in names]
            edit_files(files, file_edits)

    threads = [threading.Thread(target=run, args=(names,), daemon=True) for names in ("abc", "cba", "bca")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert texts(three_files) == {name: name + "+" * 30 for name in "abc"}

"""Edits of one file and of several: what they keep, and others who write at the same time."""

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
from tests.servers.filesystem.editing_files import code, edit_file, theirs_added, theirs_by_rename


def test_an_edit_changes_the_file_and_shows_how(root, edit):
    (root / "file").write_bytes(b"a\r\nb\r\n")
    result = edit("file", ("a\nb", "a\nc"))
    assert (root / "file").read_bytes() == b"a\r\nc\r\n"
    assert result.diff == "--- a/file\n+++ b/file\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n"
    assert (result.size, result.etag) == (6, etag_of((root / "file").stat()))


def test_a_file_that_ends_its_lines_with_cr_keeps_them_and_is_shown_by_lines(root, edit):
    (root / "file").write_bytes(b"a\rb\rc\r")
    result = edit("file", ("a\nb", "a\nB"))
    assert (root / "file").read_bytes() == b"a\rB\rc\r"
    assert result.diff == "--- a/file\n+++ b/file\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"


def test_f1_an_edit_keeps_the_charset(root, edit):
    text = "Le café est fermé à midi.\nIl n'y a personne à côté.\n"
    (root / "file").write_bytes(text.encode("latin-1"))
    edit("file", ("fermé", "très fermé"))
    assert (root / "file").read_bytes() == text.replace("fermé", "très fermé").encode("latin-1")
    assert code(edit, "file", ("midi", "中")) == code(edit, "file", ("midi", "中"), dry_run=True) == "bad_edit"
    assert (root / "file").read_bytes() == text.replace("fermé", "très fermé").encode("latin-1")


def test_a_text_with_a_character_that_would_be_written_otherwise_is_read_and_not_edited(root, files, at, edit):
    text = "東京の天気は晴れです。\n" * 5
    data = text.encode("cp932") + b"\x87\x9a a\n"
    (root / "file").write_bytes(data)
    assert read_text(files, at("file"), 10_000).text == f"{text}∵ a\n"
    with pytest.raises(FilesError, match="two codes") as caught:
        edit("file", ("a", "b"))
    assert caught.value.code == "bad_edit"
    write_file(files, at("file"), "終わり\n", "append")
    assert (root / "file").read_bytes() == data + "終わり\n".encode("cp932")


def test_an_edit_keeps_the_byte_order_mark(root, edit):
    (root / "file").write_bytes(b"\xef\xbb\xbfa")
    edit("file", ("a", "b"))
    assert (root / "file").read_bytes() == b"\xef\xbb\xbfb"


def test_what_can_not_be_edited_stays_as_it_is(root, edit):
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


def test_f14_parallel_edits_are_all_applied(root, edit):
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


class Rude(str):
    """An old text during whose replacement somebody else does something, once."""

    act = staticmethod(lambda: None)

    def replace(self, *arguments):
        Rude.act()
        Rude.act = staticmethod(lambda: None)
        return super().replace(*arguments)


@pytest.mark.parametrize("meddle", [theirs_by_rename, theirs_added, lambda file: file.write_text("theirs, a")])
def test_f25_an_edit_keeps_what_another_program_writes_meanwhile(files, root, at, meddle, no_leak):
    (root / "file").write_text("a")
    Rude.act = staticmethod(lambda: meddle(root / "file"))
    edit_file(files, at("file"), [(Rude("a"), "b")])
    assert [path.name for path in root.iterdir()] == ["file"]
    assert (root / "file").read_text() in ("b, theirs", "theirs, b")


@pytest.mark.parametrize("meddle", [theirs_by_rename, theirs_added, lambda file: file.write_text("theirs, a")])
def test_f25_a_change_from_outside_is_an_error_where_one_version_was_asked_for(files, root, at, meddle):
    (root / "file").write_text("a")
    Rude.act = staticmethod(lambda: meddle(root / "file"))
    etag = etag_of((root / "file").stat())
    with pytest.raises(FilesError) as caught:
        edit_file(files, at("file"), [(Rude("a"), "b")], etag=etag)
    assert caught.value.code == "changed"
    assert str(caught.value) == "file: has been changed by another program in the meantime. Read it again."
    assert [path.name for path in root.iterdir()] == ["file"]
    assert (root / "file").read_text() in ("a, theirs", "theirs, a")


def test_f25_an_edit_that_no_longer_fits_is_an_error(files, root, at):
    (root / "file").write_text("a")
    Rude.act = staticmethod(lambda: (root / "file").write_text("theirs"))
    assert code(edit_file, files, at("file"), [(Rude("a"), "b")]) == "no_match"
    assert (root / "file").read_text() == "theirs"


def test_what_others_add_and_can_not_be_carried_over_is_kept(files, root, at, monkeypatch, no_leak):
    (root / "file").write_text("a")
    plain, fails = os.pread, iter([True])

    def pread(*arguments):
        if next(fails, False):
            raise OSError(errno.EIO, "")
        return plain(*arguments)

    monkeypatch.setattr(os, "pread", pread)
    Rude.act = staticmethod(lambda: theirs_added(root / "file"))
    edit_file(files, at("file"), [(Rude("a"), "b")])
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "b, theirs")]


def without_exchange(monkeypatch, number, after=0):
    """The system answers with this error number when names are to be exchanged, but for the first times: this one
    could."""
    plain, left = exchange._renameat2(), iter([True] * after)
    monkeypatch.setattr(exchange, "_renameat2", lambda: lambda *names: plain(*names) if next(left, False) else number)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP])
def test_where_no_names_can_be_exchanged_an_edit_is_a_rename_after_a_look(files, root, at, monkeypatch, number):
    without_exchange(monkeypatch, number)
    (root / "file").write_text("a")
    edit_file(files, at("file"), [("a", "b")])
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "b")]
    Rude.act = staticmethod(lambda: (root / "file").write_text("bb"))
    etag = etag_of((root / "file").stat())
    with pytest.raises(FilesError) as caught:
        edit_file(files, at("file"), [(Rude("b"), "c")], etag=etag)
    assert str(caught.value) == "file: has been changed by another program in the meantime. Read it again."
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "bb")]


def test_what_was_exchanged_and_can_not_be_exchanged_again_is_put_back_by_a_rename(files, root, at, monkeypatch):
    without_exchange(monkeypatch, errno.ENOSYS, after=1)
    (root / "file").write_text("a")
    Rude.act = staticmethod(lambda: (root / "file").write_text("theirs, a"))
    etag = etag_of((root / "file").stat())
    assert code(edit_file, files, at("file"), [(Rude("a"), "b")], etag=etag) == "changed"
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "theirs, a")]


def test_an_exchange_that_fails_leaves_the_old_file(files, root, at, monkeypatch):
    without_exchange(monkeypatch, errno.ENOSPC)
    (root / "file").write_text("a")
    assert code(edit_file, files, at("file"), [("a", "b")]) == "no_space"
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [("file", "a")]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells that a file is open elsewhere")
def test_what_is_added_to_the_old_file_by_who_has_it_open_is_kept(root, files, at, monkeypatch):
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
def three(root):
    for name in "abc":
        (root / name).write_text(name)
    return root


def edit_all_by(files):
    """Puts a cross behind what each of the files holds; `names` are also their contents."""

    def run(names, **more):
        wanted = [FileEdits(files.roots.place(name), [Edit(name[-1], name[-1] + "+")]) for name in names]
        return edit_files(files, wanted, **more)

    return run


@pytest.fixture
def edit_all(files):
    return edit_all_by(files)


def texts(root):
    """What all files hold, leftovers included."""
    return {path.name: path.read_text() for path in sorted(root.iterdir())}


OLD = {"a": "a", "b": "b", "c": "c"}
NEW = {"a": "a+", "b": "b+", "c": "c+"}


def test_several_files_are_edited_and_a_dry_run_changes_none(three, edit_all):
    assert all("+" in result.diff for result in edit_all("abc", dry_run=True))
    assert texts(three) == OLD
    results = edit_all("abc")
    assert texts(three) == NEW
    assert [result.diff.splitlines()[0] for result in results] == ["--- a/a", "--- a/b", "--- a/c"]


def test_where_one_edit_does_not_fit_no_file_is_changed(three, edit_all):
    (three / "c").write_text("other")
    assert code(edit_all, "abc") == "no_match"
    assert texts(three) == {**OLD, "c": "other"}


def test_one_file_twice_is_refused(three, edit_all):
    (three / "da").symlink_to("a")
    for names in (["a", "b", "a"], ["b", "a", "da"]):
        assert code(edit_all, names) == "bad_edit"
    assert texts(three) == {**OLD, "da": "a"}


def exchanging(monkeypatch, before=lambda name: None, after=lambda name: None):
    """Something happens before and after a file of a name is replaced, which no other program can time as well."""
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


def test_where_one_file_can_not_be_replaced_those_before_it_are_as_they_were(three, either, monkeypatch, no_leak):
    before = {name: (three / name).stat().st_ino for name in "ab"}
    exchanging(monkeypatch, failing_at("c"))
    assert code(edit_all_by(either), "abc") == "io_error"
    assert texts(three) == OLD
    assert {name: (three / name).stat().st_ino for name in "ab"} == before


def test_where_there_are_no_hard_links_files_are_put_back_from_copies(three, edit_all, monkeypatch):
    def link(*arguments, **more):
        raise PermissionError(1, "")

    exchanging(monkeypatch, failing_at("c"))
    monkeypatch.setattr(os, "link", link)
    assert code(edit_all, "abc") == "io_error"
    assert texts(three) == OLD


def test_f25_a_change_of_the_last_file_from_outside_undoes_the_others(three, edit_all, monkeypatch):
    exchanging(monkeypatch, after=lambda name: name == "a" and (three / "c").write_text("theirs"))
    # The edit is tried again, upon what is there now.
    assert code(edit_all, "abc") == "no_match"
    assert texts(three) == {**OLD, "c": "theirs"}


def test_what_someone_else_wrote_meanwhile_is_not_undone(three, edit_all, monkeypatch):
    def replace():
        (three / "new").write_text("theirs")
        (three / "new").replace(three / "a")

    exchanging(monkeypatch, failing_at("b", replace))
    assert code(edit_all, "ab") == "io_error"
    assert texts(three) == {**OLD, "a": "theirs"}


def test_all_files_together_may_not_be_too_large(three, edit_all, monkeypatch):
    monkeypatch.setattr(editing, "MAX_EDITED", 2)
    assert code(edit_all, "abc") == "too_large"


def test_several_files_in_any_order_do_not_wait_for_each_other(three, files):
    def run(names):
        for _ in range(10):
            wanted = [FileEdits(files.roots.place(name), [Edit(name, name + "+")]) for name in names]
            edit_files(files, wanted)

    threads = [threading.Thread(target=run, args=(names,), daemon=True) for names in ("abc", "cba", "bca")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert texts(three) == {name: name + "+" * 30 for name in "abc"}

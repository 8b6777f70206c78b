import errno
import os
import resource
import stat
import sys
import threading
from itertools import count

import pytest

from servers.filesystem.edit.delete import delete
from servers.filesystem.edit.move import copy, move
from servers.filesystem.edit.write import create_directory, write_file
from servers.filesystem.errors import FilesError
from shared.kit.rooted import exchange
from shared.kit.rooted.entries import etag_of
from shared.kit.rooted.files import RootedFiles
from shared.kit.rooted.roots import Roots
from tests.servers.filesystem.conftest import swapping
from tests.servers.filesystem.editing_files import edit_file
from tests.shared.kit.rooted.conftest import NOT_ON_WINDOWS


@pytest.fixture
def write(either):
    return lambda written, text="new", *more: write_file(either, either.roots.place(written), text, *more)


@pytest.fixture
def edit(either):
    return lambda written, *edits, **more: edit_file(either, either.roots.place(written), edits, **more)


def code(call, *arguments, **more):
    with pytest.raises(FilesError) as caught:
        call(*arguments, **more)
    return caught.value.code


def theirs_by_rename(file):
    (file.parent / "theirs").write_text("a, theirs")
    (file.parent / "theirs").rename(file)


def theirs_added(file):
    with file.open("a") as opened:
        opened.write(", theirs")


def test_a_new_file(root, write):
    assert (write("file").size, (root / "file").read_bytes()) == (3, b"new")


def test_whether_a_file_is_new(write):
    assert [write("file").created, write("file").created] == [True, False]


def test_an_empty_file(root, write):
    write("file", "")
    assert (root / "file").read_bytes() == b""


@pytest.mark.parametrize("end", ["/", "//", "/."])
def test_a_name_that_ends_as_that_of_a_directory_is_none_for_a_file(root, either, write, edit, end):
    (root / "old").write_text("old")
    (root / "sub").mkdir()
    place = either.roots.place
    for name in (f"new{end}", f"old{end}", f"sub/new{end}", f"{root}/new{end}", f"{root.as_uri()}/new{end}"):
        assert code(write, name) == code(write, name, "new", "append") == "bad_path"
        for act in (move, copy):
            assert code(act, either, place("old"), place(name.replace("old", "new"))) == "bad_path"
    assert code(edit, f"old{end}", ("old", "new")) == "bad_path"
    for act in (move, copy):
        assert code(act, either, place(f"old{end}"), place("new")) == "bad_path"
    assert code(delete, either, place(f"old{end}")) == "bad_path"
    assert sorted(path.name for path in root.rglob("*")) == ["old", "sub"]
    assert (root / "old").read_text() == "old"


@pytest.mark.skipif(os.sep == "\\", reason="there a backslash stands between names")
@NOT_ON_WINDOWS
def test_a_name_may_end_in_a_backslash(root, write):
    write("new\\")
    assert os.listdir(root) == ["new\\"]


def test_a_name_that_ends_as_that_of_a_directory_is_one_for_a_directory(root, either):
    place = either.roots.place
    assert create_directory(either, place("a/"))
    move(either, place("a/"), place("b/"))
    copy(either, place("b/"), place("c/"))
    delete(either, place("b/"))
    assert [path.name for path in root.iterdir()] == ["c"]


def test_f8_writing_through_a_link_keeps_the_link(root, write):
    (root / "file").write_text("old")
    (root / "link").symlink_to("file")
    write("link")
    assert ((root / "link").is_symlink(), (root / "file").read_text()) == (True, "new")


def test_writing_through_a_link_out_is_refused(root, outside, write):
    (root / "link").symlink_to(outside / "new")
    (root / "dir").symlink_to(outside)
    assert code(write, "link") == code(write, "dir/new") == "outside_roots"
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_writing_through_a_dangling_link_is_refused(root, write):
    (root / "link").symlink_to("none")
    assert code(write, "link") == "not_found"
    assert not (root / "none").exists()


def test_f11_a_write_protected_file_is_refused(root, write, edit):
    (root / "file").write_text("old")
    (root / "file").chmod(0o444)
    assert code(write, "file") == code(edit, "file", ("old", "new")) == "read_only"
    assert (root / "file").read_text() == "old"


def test_f11_a_file_with_hard_links_is_refused(root, write, edit):
    (root / "file").write_text("old")
    (root / "other").hardlink_to(root / "file")
    assert code(write, "file") == code(edit, "file", ("old", "new")) == "hard_links"


def test_protected_files_are_changed_where_the_operator_allows_it(root, write, edit):
    (root / "file").write_text("old")
    (root / "file").chmod(0o444)
    (root / "other").hardlink_to(root / "file")
    edit("file", ("old", "new"), protected=True)
    assert [(root / name).read_text() for name in ("file", "other")] == ["new", "old"]
    write("other", "newer", "overwrite", None, True)
    assert [(root / name).read_text() for name in ("file", "other")] == ["new", "newer"]
    assert (root / "file").stat().st_mode & 0o777 == 0o444


def test_what_is_no_file_is_refused(root, write):
    (root / "dir").mkdir()
    os.mkfifo(root / "pipe")
    assert code(write, "dir") == code(write, ".") == "not_a_file"
    assert code(write, "pipe") == "special_file"


def test_a_new_file_only(root, write):
    (root / "link").symlink_to("none")
    assert write("file", "one", "create").created
    assert code(write, "file", "two", "create") == code(write, "link", "two", "create") == "already_exists"
    assert (root / "file").read_text() == "one"


def test_adding_to_a_file(root, write):
    assert [write("file", text, "append").size for text in ("a\n", "b\n")] == [2, 4]
    assert (root / "file").read_text() == "a\nb\n"


def test_what_is_added_has_the_charset_and_the_line_ends_of_the_file(root, write):
    (root / "wide").write_bytes("\ufeffa\r\n".encode("utf-16-le"))
    (root / "latin").write_bytes("très fermé, à côté\n".encode("latin-1"))
    write("wide", "b\n", "append")
    write("latin", "été\n", "append")
    assert (root / "wide").read_bytes() == "\ufeffa\r\nb\r\n".encode("utf-16-le")
    assert (root / "latin").read_bytes() == "très fermé, à côté\nété\n".encode("latin-1")


def test_adding_to_what_is_no_text_or_too_large_is_refused(root, write):
    (root / "data").write_bytes(b"\x00\xff")
    with (root / "large").open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    assert [code(write, name, "x", "append") for name in ("data", "large")] == ["not_text", "too_large"]


def test_half_a_surrogate_pair_is_not_written(root, write):
    assert code(write, "file", "\ud800") == "bad_edit"
    assert os.listdir(root) == []


def test_a_file_that_has_changed_is_not_written(root, write, edit):
    (root / "file").write_text("one")
    etag = etag_of((root / "file").stat())
    etag = write("file", "two", "overwrite", etag).etag
    etag = edit("file", ("two", "three"), etag=etag).etag
    (root / "file").write_text("theirs")
    for mode in ("overwrite", "append"):
        assert code(write, "file", "four", mode, etag) == "changed"
    assert code(edit, "file", ("theirs", "four"), etag=etag) == "changed"
    (root / "file").unlink()
    assert code(write, "file", "four", "overwrite", etag) == "changed"
    assert os.listdir(root) == []


@pytest.mark.parametrize("comes_after", [theirs_by_rename, lambda file: file.unlink()], ids=["replaced", "deleted"])
@pytest.mark.parametrize(
    "act",
    [lambda files, place: write_file(files, place, "new"), lambda *file: edit_file(*file, [("old", "new")])],
    ids=["write", "edit"],
)
def test_the_etag_of_a_write_is_not_that_of_what_comes_after_it(files, root, at, monkeypatch, act, comes_after):
    (root / "file").write_text("old")
    plain = os.fsync

    def fsync(descriptor):
        plain(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            comes_after(root / "file")

    monkeypatch.setattr(os, "fsync", fsync)
    written = act(files, at("file"))
    monkeypatch.undo()
    assert code(write_file, files, at("file"), "newer", etag=written.etag) == "changed"


def test_each_of_many_quick_writes_has_an_etag_of_its_own(write):
    assert len({write("file", str(i % 10)).etag for i in range(300)}) == 300


def test_a_missing_directory_is_not_made(write):
    assert code(write, "none/file") == "not_found"


def test_an_edit_changes_the_file_and_shows_how(root, edit):
    (root / "file").write_bytes(b"a\r\nb\r\n")
    result = edit("file", ("a\nb", "a\nc"))
    assert (root / "file").read_bytes() == b"a\r\nc\r\n"
    assert result.diff == "--- a/file\n+++ b/file\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n"
    assert (result.size, result.etag) == (6, etag_of((root / "file").stat()))


def test_a_dry_run_writes_nothing(root, edit):
    (root / "file").write_text("a")
    assert "+b" in edit("file", ("a", "b"), dry_run=True).diff
    assert (root / "file").read_text() == "a"


def test_an_edit_of_other_bytes_than_text_is_refused(root, edit):
    (root / "file").write_bytes(b"\x00\x01\xff a")
    assert code(edit, "file", ("a", "b")) == "not_text"
    assert (root / "file").read_bytes() == b"\x00\x01\xff a"


def test_f1_an_edit_keeps_the_charset(root, edit):
    text = "Le café est fermé à midi.\nIl n'y a personne à côté.\n"
    (root / "file").write_bytes(text.encode("latin-1"))
    edit("file", ("fermé", "très fermé"))
    assert (root / "file").read_bytes() == text.replace("fermé", "très fermé").encode("latin-1")
    assert code(edit, "file", ("midi", "中")) == code(edit, "file", ("midi", "中"), dry_run=True) == "bad_edit"
    assert (root / "file").read_bytes() == text.replace("fermé", "très fermé").encode("latin-1")


def test_an_edit_keeps_the_byte_order_mark(root, edit):
    (root / "file").write_bytes(b"\xef\xbb\xbfa")
    edit("file", ("a", "b"))
    assert (root / "file").read_bytes() == b"\xef\xbb\xbfb"


def test_half_a_surrogate_pair_is_refused(root, edit):
    (root / "file").write_text("a")
    assert code(edit, "file", ("a", "\ud800")) == "bad_edit"
    assert os.listdir(root) == ["file"]


def test_a_file_too_large_to_edit(root, edit):
    with (root / "file").open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    assert code(edit, "file", ("a", "b")) == "too_large"


def test_edits_of_what_is_no_file(root, edit):
    os.mkfifo(root / "pipe")
    assert code(edit, "pipe", ("a", "b")) == "special_file"
    assert code(edit, "none", ("a", "b")) == "not_found"


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
    assert str(caught.value) == "file: was changed by someone else meanwhile. Read it again."
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
    """The system answers with this error number when names are to be exchanged, but for the first times."""
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
    assert str(caught.value) == "file: was changed by someone else meanwhile. Read it again."
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


def test_what_is_appended_is_in_the_file_that_others_have_open(root, write):
    (root / "file").write_text("old\n")
    before = (root / "file").stat().st_ino
    written = write("file", "new\n", "append")
    assert (root / "file").read_text() == "old\nnew\n"
    assert ((root / "file").stat().st_ino, written.size) == (before, 8)


def test_what_does_not_fit_on_the_disk_is_not_appended_in_part(root, write):
    (root / "file").write_text("old\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        assert code(write, "file", "x" * 100, "append") == "io_error"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (root / "file").read_text() == "old\n"


def test_what_the_system_takes_in_pieces_is_written_whole(root, write, monkeypatch):
    plain = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: plain(descriptor, data[:2]))
    write("file", "12345")
    write("file", "6789\n", "append")
    assert (root / "file").read_text() == "123456789\n"


def test_what_others_add_behind_what_did_not_fit_stays(root, write, monkeypatch):
    (root / "file").write_text("old\n")
    plain, fits = os.write, iter([True, False])

    def write_some(descriptor, data):
        if next(fits):
            return plain(descriptor, data[:2])
        theirs_added(root / "file")
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "write", write_some)
    assert code(write, "file", "mine", "append") == "no_space"
    assert (root / "file").read_text() == "old\nmi, theirs"


def test_directories_are_made_with_those_above(either, root):
    assert create_directory(either, either.roots.place("a/b/c"))
    assert not create_directory(either, either.roots.place("a/b/c"))
    assert (root / "a/b/c").is_dir()


def test_directories_behind_links(either, root, outside):
    (root / "in").symlink_to(".")
    (root / "out").symlink_to(outside)
    (root / "none").symlink_to("nothing")
    assert create_directory(either, either.roots.place("in/a"))
    assert code(create_directory, either, either.roots.place("out/a")) == "outside_roots"
    assert code(create_directory, either, either.roots.place("none")) == "not_found"


def test_a_file_in_the_way_of_a_directory(either, root):
    (root / "file").touch()
    for name in ("file", "file/a"):
        assert code(create_directory, either, either.roots.place(name)) == "not_a_directory"


def test_without_permission_nothing_is_written(root):
    (root / "file").write_text("a")
    files = RootedFiles(Roots([root]))
    place, other = files.roots.place("file"), files.roots.place("other")
    for call in (
        lambda: write_file(files, other, ""),
        lambda: edit_file(files, place, [("a", "b")]),
        lambda: create_directory(files, other),
        lambda: move(files, place, other),
        lambda: copy(files, place, other),
        lambda: delete(files, place),
    ):
        with pytest.raises(FilesError, match="may only be read") as caught:
            call()
        assert caught.value.code == "read_only"
    assert os.listdir(root) == ["file"]
    files.close()


def both(root, tmp_path):
    """Files in a writable directory, which holds a read-only one and a link to another."""
    for path in (root / "inner", tmp_path / "other"):
        path.mkdir()
        (path / "file").write_text("a")
    (root / "near").symlink_to("inner")
    (root / "far").symlink_to(tmp_path / "other")
    (root / "mine").touch()
    return RootedFiles(Roots([root, root / "inner", tmp_path / "other"], [True, False, False]))


@pytest.mark.parametrize("way", ["inner", "near", "far"])
def test_a_read_only_directory_is_not_written_to_by_any_way(root, tmp_path, way):
    files = both(root, tmp_path)

    def at(path):
        return files.roots.place(f"{root}/{path}")

    (root / "link").symlink_to(f"{way}/file")
    for call in (
        lambda: write_file(files, at(f"{way}/file"), ""),
        lambda: write_file(files, at(f"{way}/new"), ""),
        lambda: write_file(files, at("link"), ""),
        lambda: edit_file(files, at(f"{way}/file"), [("a", "b")]),
        lambda: create_directory(files, at(f"{way}/new")),
        lambda: move(files, at(f"{way}/file"), at("new")),
        lambda: move(files, at("mine"), at(f"{way}/new")),
        lambda: copy(files, at("mine"), at(f"{way}/new")),
        lambda: delete(files, at(f"{way}/file")),
    ):
        with pytest.raises(FilesError) as caught:
            call()
        assert caught.value.code == "read_only"
    assert (root / way / "file").read_text() == "a"
    assert os.listdir(root / way) == ["file"]
    files.close()


def test_a_directory_that_holds_a_root_is_not_moved(root, tmp_path):
    (root / "inner").mkdir()
    outer = RootedFiles(Roots([tmp_path, root / "inner"], [True, False]))
    with pytest.raises(FilesError, match="holds an allowed directory"):
        move(outer, outer.roots.place(str(root)), outer.roots.place(f"{tmp_path}/new"))
    assert root.is_dir()
    outer.close()


@pytest.mark.slow
def test_writing_while_a_directory_is_swapped_for_a_link_stays_inside(files, root, outside, at):
    (root / "dir").mkdir()
    (root / "link").symlink_to(outside)
    seen = set()
    with swapping(root):
        # As long as it takes to meet both states, on a busy machine too.
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


def test_no_descriptor_is_left(files, root, at, no_leak):
    (root / "dir").mkdir()
    for _ in range(30):
        code(write_file, files, at("dir"), "")
        code(edit_file, files, at("none"), [("a", "b")])
        code(move, files, at("none"), at("dir"))
        code(copy, files, at("dir"), at("dir/copy"))
        code(delete, files, at("none"))
        code(create_directory, files, at("dir/" + "x" * 300))

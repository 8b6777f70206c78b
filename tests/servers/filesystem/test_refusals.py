"""What a refusal says to the model: a code, what is wrong with the path as it was written, and what to do."""

import os
import sys

import pytest

from servers.filesystem.edit import delete as deleting
from servers.filesystem.edit import edit as editing
from servers.filesystem.edit import move as moving
from servers.filesystem.edit import write as writing
from servers.filesystem.edit.delete import Bounds, delete
from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.move import copy, move
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.edit.write import create_directory, write_file
from servers.filesystem.errors import FilesError, explained
from shared.kit.rooted import locks
from shared.kit.rooted.names import MAX_PATH
from shared.kit.rooted.roots import Roots
from tests.servers.filesystem.editing_files import edit_file

if sys.platform != "win32":
    import fcntl


def refusal(call, *arguments, **more):
    with pytest.raises(FilesError) as caught:
        call(*arguments, **more)
    return explained(caught.value)


@pytest.fixture
def tree(root):
    (root / "file").write_text("one\ntwo\ntwo\n")
    (root / "dir").mkdir()
    (root / "dir/.env").touch()
    (root / "link").symlink_to("nothing")
    (root / "loop").symlink_to("loop")
    (root / "protected").touch(0o400)
    (root / "twin").touch()
    os.link(root / "twin", root / "other")
    os.mkfifo(root / "pipe")
    return root


IMPOSSIBLE = "the path holds characters no file name can have"
OUTSIDE = "is outside the allowed directories. Use a path beneath"
MISSING = "does not exist. List the parent directory to see what is there."
DANGLING = "is a link to something that does not exist"
SPECIAL = "is neither a regular file nor a directory"
TAKEN = "already exists. Choose another name."
SLASH = "ends as only a directory does. Leave the slash out."


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", "bad_path: the path is empty"),
        ("a" * (MAX_PATH + 1), f"bad_path: {'a' * 80}...: the path is too long"),
        ("a\0", "bad_path: a\\x00: the path holds a NUL character"),
        ("a\ud800", f"bad_path: a\\ud800: {IMPOSSIBLE}"),
        ("file://host/a", "bad_path: file://host/a: the URI names another host"),
        ("file:a", "bad_path: file:a: the URI has no absolute path. Write file:///path."),
        (
            "file:///a?b",
            "bad_path: file:///a?b: the URI has a query or fragment. Write ? as %3F and # as %23 in names.",
        ),
        ("file:///a%2Fb", "bad_path: file:///a%2Fb: the URI has a broken escape or an encoded separator"),
        ("file:///a%00", "bad_path: file:///a%00: the path holds a NUL character"),
        ("/etc", f"outside_roots: /etc: {OUTSIDE} ROOT."),
        ("..", f"outside_roots: ..: {OUTSIDE} ROOT."),
    ],
)
def test_a_path_that_can_be_none(files, root, written, expected):
    assert refusal(files.roots.place, written).replace(str(root), "ROOT") == expected


def test_a_path_beside_several_directories(tmp_path):
    for name in "abcd":
        (tmp_path / name).mkdir()
    place = Roots([tmp_path / name for name in "abcd"]).place
    shown = ", ".join(str(tmp_path / name) for name in "abc")
    assert refusal(place, "/etc") == f"outside_roots: /etc: {OUTSIDE} {shown}, and others."
    reason = "a relative path must begin with the name of one root"
    assert refusal(place, "e") == f"bad_path: e: {reason}. Use an absolute path; the roots are {shown}, {tmp_path}/d."


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("no", f"not_found: no: {MISSING}"),
        (
            "no/file",
            "not_found: no/file: the directory it would be in does not exist. Make it with create_directory first.",
        ),
        ("link", f"not_found: link: {DANGLING}"),
        ("loop", "bad_path: loop: the path goes through too many links"),
        ("dir", "not_a_file: dir: is a directory. Use list_directory."),
        ("pipe", f"special_file: pipe: {SPECIAL}"),
        ("file/x", "not_a_directory: file/x: a component of the path is not a directory"),
        (
            "dir/.env",
            "denied: dir/.env: is denied to this server by its name, or by that of a directory it is in."
            " Only the operator can allow it.",
        ),
    ],
)
def test_what_can_not_be_read(files, at, tree, written, expected):
    assert refusal(files.open_file(at(written)).__enter__) == expected


def test_what_can_not_be_listed(files, at, tree):
    assert (
        refusal(lambda: files.open_directory(at("file")).__enter__()) == "not_a_directory: file: is not a directory"
    )
    assert refusal(lambda: files.open_directory(at("no")).__enter__()) == f"not_found: no: {MISSING}"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda files, at: write_file(files, at("file/"), ""), f"bad_path: file/: {SLASH}"),
        (lambda files, at: write_file(files, at("file"), "", "create"), f"already_exists: file: {TAKEN}"),
        (
            lambda files, at: write_file(files, at("new"), "", etag="0"),
            "changed: new: was deleted by someone else meanwhile. List its directory.",
        ),
        (lambda files, at: write_file(files, at("link"), ""), f"not_found: link: {DANGLING}"),
        (lambda files, at: write_file(files, at("dir"), ""), "not_a_file: dir: is a directory. Use list_directory."),
        (lambda files, at: write_file(files, at("pipe"), ""), f"special_file: pipe: {SPECIAL}"),
        (
            lambda files, at: write_file(files, at("protected"), ""),
            "read_only: protected: is write-protected. Ask the user to change its permissions.",
        ),
        (
            lambda files, at: write_file(files, at("twin"), ""),
            "hard_links: twin: has 2 hard links; replacing it would separate them. Write to another name.",
        ),
        (
            lambda files, at: create_directory(files, at("file")),
            "not_a_directory: file: file exists and is not a directory",
        ),
        (lambda files, at: create_directory(files, at("link")), f"not_found: link: {DANGLING}"),
        (
            lambda files, at: edit_files(files, [FileEdits(at("file"), [Edit("one", "")])] * 2),
            "bad_edit: file: is named twice. Give all edits of a file together.",
        ),
        (lambda files, at: delete(files, at("no")), f"not_found: no: {MISSING}"),
        (
            lambda files, at: delete(files, at("dir")),
            "not_empty: dir: is a directory that is not empty. With recursive: true it is deleted with all it holds.",
        ),
        (
            lambda files, at: delete(files, at("dir"), recursive=True),
            "denied: dir: holds something that is denied to this server by its name. Only the operator can allow it.",
        ),
        (lambda files, at: delete(files, at(".")), "bad_path: .: is an allowed directory itself"),
        (lambda files, at: delete(files, at("file/")), f"bad_path: file/: {SLASH}"),
        (lambda files, at: move(files, at("no"), at("new")), f"not_found: no: {MISSING}"),
        (lambda files, at: move(files, at("file"), at("twin")), f"already_exists: twin: {TAKEN}"),
        (lambda files, at: copy(files, at("no"), at("new")), f"not_found: no: {MISSING}"),
        (lambda files, at: copy(files, at("file"), at("twin")), f"already_exists: twin: {TAKEN}"),
        (
            lambda files, at: copy(files, at("dir"), at("dir/new")),
            "bad_path: dir: is a directory that would hold its own copy",
        ),
        (
            lambda files, at: copy(files, at("pipe"), at("new")),
            "special_file: pipe: pipe is neither a file, nor a directory, nor a link",
        ),
    ],
)
def test_what_can_not_be_changed(files, at, tree, call, expected):
    assert refusal(call, files, at) == expected


COPY = "Read the file again and copy the old text exactly."


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([], "bad_edit: file: there are no edits"),
        ([("", "")], "bad_edit: file: edit 1: the old text is empty"),
        (
            [("one", "1"), ("two", "2")],
            "ambiguous_match: file: edit 2: the old text matches 2 places, at lines 2, 3."
            " Add neighbouring lines until it is unique, or give count to replace several.",
        ),
        (
            [("two", "2", 3)],
            "wrong_count: file: edit 1: the old text matches 2 places, at lines 2, 3, and not 3",
        ),
        (
            [("tow", "2")],
            f"no_match: file: edit 1: the old text is not in the file. The nearest is line 2: 'two'. {COPY}",
        ),
        ([("other", "")], f"no_match: file: edit 1: the old text is not in the file. {COPY}"),
    ],
)
def test_edits_that_do_not_fit(files, at, tree, edits, expected):
    assert refusal(edit_file, files, at("file"), edits) == expected


def test_what_someone_else_has_changed(files, at, tree):
    etag = write_file(files, at("file"), "one").etag
    reason = f"was changed by someone else meanwhile; its etag is {etag} now. Read it again."
    assert refusal(write_file, files, at("file"), "", etag="0") == f"changed: file: {reason}"


def test_a_directory_that_may_only_be_read(tmp_path, root):
    roots = Roots([tmp_path, root], [False, True])
    suggestion = "The operator can allow it with --allow-write, or --root DIR:rw."
    expected = f"read_only: {tmp_path}/new: is in a directory that may only be read. {suggestion}"
    assert refusal(roots.require_writable, roots.place(f"{tmp_path}/new")) == expected


def test_what_is_too_large(files, at, tree, monkeypatch):
    for module in (editing, writing):
        monkeypatch.setattr(module, "MAX_EDITED", 2_000)
    monkeypatch.setattr(moving, "MAX_COPIED", 2_000)
    monkeypatch.setattr(deleting, "MAX_ENTRIES", 0)
    (tree / "large").write_text("x" * 3_000)
    expected = "too_large: large: has 3,000 bytes; the limit is 2,000 for all files of a call"
    assert refusal(edit_file, files, at("large"), [("x", "")]) == expected
    assert refusal(delete, files, at("dir"), recursive=True) == "too_large: dir: holds more than 0 entries"
    monkeypatch.setattr(deleting, "MAX_ENTRIES", 1)
    assert refusal(copy, files, at("large"), at("new")) == "too_large: large: holds more than 2,000 bytes"
    monkeypatch.setattr(deleting, "MAX_DEPTH", 0)
    expected = "too_large: dir: holds directories nested deeper than 0"
    assert refusal(delete, files, at("dir"), recursive=True) == expected


def test_what_is_on_another_file_system(files, tree):
    found = tree.stat()
    Bounds(files, "dir", found.st_dev).enter(found, 1)
    expected = "cross_device: dir: holds a directory on another file system"
    assert refusal(Bounds(files, "dir", found.st_dev + 1).enter, found, 1) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_what_another_process_writes(files, at, tree, monkeypatch):
    monkeypatch.setattr(locks, "PATIENCE", 0)
    with (tree / "file").open() as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        expected = "busy: file: is being written by another process. Try again."
        assert refusal(write_file, files, at("file"), "") == expected

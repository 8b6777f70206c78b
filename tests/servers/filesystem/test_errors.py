"""Errors: their code, the reason with the path as given, and the suggestion."""

import os
import sys
from pathlib import Path

import pytest

from servers.common.files import locks
from servers.common.files.denylist import Denylist
from servers.common.files.names import MAX_PATH
from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.common.files.small_reads import SmallFiles
from servers.filesystem.edit import delete as deleting
from servers.filesystem.edit import edit as editing
from servers.filesystem.edit import move as moving
from servers.filesystem.edit import write as writing
from servers.filesystem.edit.delete import Bounds, delete
from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.move import copy, move
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.edit.write import WriteOptions, create_directory, write_file
from servers.filesystem.errors import FilesError, format_error
from servers.filesystem.read.binary import read_bytes
from servers.filesystem.read.pages import read_text
from servers.filesystem.read.parts import Part
from servers.filesystem.search.content import SearchRequest, search_content
from servers.filesystem.search.files import Scope, SearchProgress, search_files
from servers.filesystem.search.listing import info, list_directory
from servers.filesystem.search.matcher import Query
from servers.filesystem.search.page import Page
from servers.filesystem.search.tree import Limits, directory_tree
from servers.filesystem.watch.fingerprint import take_fingerprint
from shared.coded_errors import PathError
from shared.program.files.entries import Place
from tests.servers.common.files.conftest import opened_by
from tests.servers.filesystem.editing_files import code, edit_file

if sys.platform != "win32":
    import fcntl


def refusal(call, *arguments, **more):
    with pytest.raises(FilesError) as caught:
        call(*arguments, **more)
    return format_error(caught.value)


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


IMPOSSIBLE = "the path contains characters that no file name can have"
OUTSIDE = "is outside the allowed directories. Use a path beneath"
MISSING = "does not exist. List the parent directory to see what is there."
DANGLING = "is a link to something that does not exist"
SPECIAL = "is neither a regular file nor a directory"
TAKEN = "already exists. Choose another name."
PARENT = "already exists and is a directory. To put it in there, add /file to the path."
SLASH = "ends with a slash, but only the path of a directory can. Omit the slash."


NO_PATHS = [
    ("", "bad_path: the path is empty"),
    ("a" * (MAX_PATH + 1), f"bad_path: {'a' * 80}...: the path is too long"),
    ("a\0", "bad_path: a\\x00: the path contains a NUL character"),
    ("a\ud800", f"bad_path: a\\ud800: {IMPOSSIBLE}"),
    ("file://host/a", "bad_path: file://host/a: the URI names another host. Write file:///path, or pass the path."),
    ("file:a", "bad_path: file:a: the URI has no absolute path. Write file:///path."),
    ("file:///a?b", "bad_path: file:///a?b: the URI has a query or fragment. Write ? as %3F and # as %23 in names."),
    (
        "file:///a%2Fb",
        "bad_path: file:///a%2Fb: the URI has a broken escape or an encoded separator."
        " Write % as %25 in names, or pass the path itself.",
    ),
    ("file:///a%00", "bad_path: file:///a%00: the path contains a NUL character"),
    ("/etc", f"outside_roots: /etc: {OUTSIDE} ROOT."),
    ("..", f"outside_roots: ..: {OUTSIDE} ROOT."),
]


def mismatches(refused, rows):
    """The rows with another error than expected, with that error."""
    rows_and_errors = [(written, refused(written), expected) for written, expected in rows]
    return [row for row in rows_and_errors if row[1] != row[2]]


def test_invalid_paths_are_refused_with_code_reason_and_suggestion(files, root):
    assert mismatches(lambda written: refusal(files.roots.place, written).replace(str(root), "ROOT"), NO_PATHS) == []


def test_paths_outside_several_roots_are_refused_with_the_roots(tmp_path):
    for name in "abcd":
        (tmp_path / name).mkdir()
    place = Roots([tmp_path / name for name in "abcd"]).place
    shown = ", ".join(str(tmp_path / name) for name in "abc")
    assert refusal(place, "/etc") == f"outside_roots: /etc: {OUTSIDE} {shown}, and others."
    reason = "a relative path must begin with the name of a root"
    assert refusal(place, "e") == f"bad_path: e: {reason}. Use an absolute path; the roots are {shown}, {tmp_path}/d."


UNREADABLE = [
    ("no", f"not_found: no: {MISSING}"),
    ("no/file", "not_found: no/file: its parent directory does not exist"),
    ("link", f"not_found: link: {DANGLING}"),
    ("loop", "bad_path: loop: the path goes through too many links"),
    ("dir", "not_a_file: dir: is a directory"),
    ("pipe", f"special_file: pipe: {SPECIAL}"),
    ("file/x", "not_a_directory: file/x: a component of the path is not a directory"),
    (
        "dir/.env",
        "denied: dir/.env: is denied to this server because of its name, or the name of a directory that contains it."
        " Only the operator can allow it.",
    ),
]


def test_unreadable_entries_are_refused_with_code_and_reason(files, at, tree):
    assert mismatches(lambda written: refusal(files.open_file(at(written)).__enter__), UNREADABLE) == []
    assert refusal(files.open_directory(at("file")).__enter__) == "not_a_directory: file: is not a directory"
    assert refusal(files.open_directory(at("no")).__enter__) == f"not_found: no: {MISSING}"


def taking_paths(function, *arguments, **more):
    """Returns a form of the operation that takes paths instead of places."""
    count = 2 if function in (move, copy) else 1
    return lambda files, at: function(files, *map(at, arguments[:count]), *arguments[count:], **more)


DELETED = "has been deleted by another program in the meantime. List its directory."
NAMED = "whose name is denied to this server. Only the operator can allow it."
FULL = "is a directory that is not empty. Pass recursive: true to delete it with everything in it."
TWIN = "has 2 hard links; replacing it would separate them. Write to another file."
PROTECTED = "is write-protected. Ask the user to change its permissions."
TWICE = "is named twice. Pass all edits to a file together."
UNCHANGED = [
    (taking_paths(write_file, "file/", ""), f"bad_path: file/: {SLASH}"),
    (taking_paths(write_file, "file", "", "create"), f"already_exists: file: {TAKEN}"),
    (
        taking_paths(write_file, "new", "", options=WriteOptions(etag="0")),
        "changed: new: has been deleted by another program in the meantime. List its directory.",
    ),
    (taking_paths(write_file, "link", ""), f"not_found: link: {DANGLING}"),
    (taking_paths(write_file, "dir", ""), "not_a_file: dir: is a directory"),
    (taking_paths(write_file, "pipe", ""), f"special_file: pipe: {SPECIAL}"),
    (taking_paths(write_file, "protected", ""), f"read_only: protected: {PROTECTED}"),
    (taking_paths(write_file, "twin", ""), f"hard_links: twin: {TWIN}"),
    (taking_paths(create_directory, "file"), "not_a_directory: file: file exists and is not a directory"),
    (taking_paths(create_directory, "link"), f"not_found: link: {DANGLING}"),
    (lambda files, at: edit_files(files, [FileEdits(at("file"), [Edit("one", "")])] * 2), f"bad_edit: file: {TWICE}"),
    (taking_paths(delete, "no"), f"not_found: no: {MISSING}"),
    (taking_paths(delete, "dir"), f"not_empty: dir: {FULL}"),
    (taking_paths(delete, "dir", recursive=True), f"denied: dir: contains an entry {NAMED}"),
    (taking_paths(delete, "."), "bad_path: .: is an allowed directory itself"),
    (taking_paths(delete, "file/"), f"bad_path: file/: {SLASH}"),
    (taking_paths(move, "no", "new"), f"not_found: no: {MISSING}"),
    (taking_paths(move, "file", "twin"), f"already_exists: twin: {TAKEN}"),
    (taking_paths(move, "file", "dir"), f"already_exists: dir: {PARENT}"),
    (taking_paths(copy, "file", "dir"), f"already_exists: dir: {PARENT}"),
    (taking_paths(copy, "no", "new"), f"not_found: no: {MISSING}"),
    (taking_paths(copy, "file", "twin"), f"already_exists: twin: {TAKEN}"),
    *(
        (taking_paths(act, "dir", "dir/new"), "bad_path: dir: is a directory that would contain itself")
        for act in (copy, move)
    ),
    (taking_paths(copy, "pipe", "new"), "special_file: pipe: pipe is neither a file, nor a directory, nor a link"),
]


def test_impossible_changes_are_refused_with_code_and_reason(files, at, tree):
    assert mismatches(lambda call: refusal(call, files, at), UNCHANGED) == []


COPY = "Read the file again and copy the old text exactly."


UNFIT = [
    ([], "bad_edit: file: there are no edits"),
    ([("", "")], "bad_edit: file: edit 1: the old text is empty"),
    (
        [("one", "1"), ("two", "2")],
        "ambiguous_match: file: edit 2: the old text matches 2 places, at lines 2, 3."
        " Add neighboring text until it is unique, or pass count to replace several.",
    ),
    ([("two", "2", 3)], "wrong_count: file: edit 1: the old text matches 2 places, at lines 2, 3, not 3"),
    (
        [("tow", "2")],
        f"no_match: file: edit 1: the old text is not in the file. The nearest is line 2: 'two', not 'tow'. {COPY}",
    ),
    ([("other", "")], f"no_match: file: edit 1: the old text is not in the file. {COPY}"),
]


def test_unfitting_edits_are_refused_with_code_and_reason(files, at, tree):
    assert mismatches(lambda edits: refusal(edit_file, files, at("file"), edits), UNFIT) == []


def test_outdated_etags_and_read_only_directories_are_refused(files, at, tree, tmp_path, root):
    etag = write_file(files, at("file"), "one").etag
    reason = f"has been changed by another program in the meantime; its etag is now {etag}. Read it again."
    assert refusal(write_file, files, at("file"), "", options=WriteOptions(etag="0")) == f"changed: file: {reason}"
    roots = Roots([tmp_path, root], [False, True])
    expected = f"read_only: {tmp_path}/new: is in a read-only directory"
    assert refusal(roots.require_writable, roots.place(f"{tmp_path}/new")) == expected


def test_sizes_over_the_limit_are_refused(files, at, tree, monkeypatch):
    for module in (editing, writing):
        monkeypatch.setattr(module, "MAX_EDITED", 2_000)
    monkeypatch.setattr(moving, "MAX_COPIED", 2_000)
    monkeypatch.setattr(deleting, "MAX_ENTRIES", 0)
    (tree / "large").write_text("x" * 3_000)
    expected = "too_large: large: has 3,000 bytes; the limit is 2,000 bytes for all files in one call"
    assert refusal(edit_file, files, at("large"), [("x", "")]) == expected
    assert refusal(delete, files, at("dir"), recursive=True) == "too_large: dir: contains more than 0 entries"
    monkeypatch.setattr(deleting, "MAX_ENTRIES", 1)
    assert refusal(copy, files, at("large"), at("new")) == "too_large: large: contains more than 2,000 bytes"
    monkeypatch.setattr(deleting, "MAX_DEPTH", 0)
    expected = "too_large: dir: contains directories nested deeper than 0"
    assert refusal(delete, files, at("dir"), recursive=True) == expected


def test_directories_on_another_file_system_are_refused(files, tree):
    status = tree.stat()
    Bounds(files, "dir", status.st_dev).require_enterable(status, 1)
    expected = "cross_device: dir: contains a directory on another file system"
    assert refusal(Bounds(files, "dir", status.st_dev + 1).require_enterable, status, 1) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_files_locked_by_another_process_are_busy(files, at, tree, monkeypatch):
    monkeypatch.setattr(locks, "TIMEOUT_SECONDS", 0)
    with (tree / "file").open() as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        expected = "busy: file: is being written by another process. Try again."
        assert refusal(write_file, files, at("file"), "") == expected


# The denylist

PAGE = Page(100, 100_000)


def test_allow_patterns_open_nothing_outside_the_roots(root, outside):
    (root / "link").symlink_to(outside / "secret")
    for allow in ("*", "**", "/", "/etc", "/etc/passwd", "../root_evil", "~"):
        try:
            roots = Roots([root], denylist=Denylist(allow=[allow]))
        except PathError:
            continue
        for path in ("/etc/passwd", str(outside / "secret"), "../root_evil/secret", str(Path.home())):
            assert code(roots.place, path) == "outside_roots"
        files = RootedFiles(roots)
        assert code(read_bytes, files, roots.place("link"), 100) == "outside_roots"
        files.close()


@pytest.fixture
def secrets(root):
    (root / ".env").write_text("PASSWORD=1")
    (root / ".ssh").mkdir()
    (root / ".ssh" / "config").write_text("Host x")
    (root / "dir").mkdir()
    (root / "dir" / "plain").write_text("a")
    for name, target in {"one": ".env", "two": "one", "three": ".ssh", "four": root / ".ssh" / "config"}.items():
        (root / f"{name}.txt").symlink_to(target if name != "two" else "one.txt")
    return root


PATHS = [".env", ".ssh/config", "one.txt", "two.txt", "three.txt/config", "four.txt", ".ssh/none", "dir/../.env"]


def test_denied_files_are_not_read_or_written_by_any_path(either, secrets):
    for path in PATHS:
        place = either.roots.place(path)
        assert code(read_bytes, either, place, 1_000) == "denied"
        assert code(read_text, either, place, 1_000, Part(tail=1)) == "denied"
        assert code(write_file, either, place, b"") == "denied"
        assert code(edit_file, either, place, [("a", "b")]) == "denied"
    assert (secrets / ".env").read_text() == "PASSWORD=1"
    assert os.listdir(secrets / ".ssh") == ["config"]


def test_denied_entries_are_not_described_moved_or_created(either, secrets):
    plain = either.roots.place("dir/plain")
    for path in (".env", ".ssh", ".ssh/config", "three.txt/config", ".aws", "dir/.env", "new.pem"):
        place = either.roots.place(path)
        assert code(info, either, place) == "denied"
        assert code(move, either, place, either.roots.place("new")) == "denied"
        assert code(move, either, plain, place) == "denied"
        assert code(create_directory, either, either.roots.place(f"{path}/x")) == "denied"
    assert (secrets / "dir" / "plain").read_text() == "a"


def test_denied_directories_are_not_listed_or_searched(either, secrets):
    for path in (".ssh", "three.txt", ".ssh/none", ".aws"):
        place = either.roots.place(path)
        assert code(list_directory, either, place, PAGE) == "denied"
        assert code(search_files, either, place, Scope(), PAGE, SearchProgress()) == "denied"
        assert (
            code(search_content, either, place, Scope(), SearchRequest(Query("m")), PAGE, SearchProgress())
            == "denied"
        )
        assert code(directory_tree, either, place, (), Limits(10, 100, 100_000), SearchProgress()) == "denied"


def test_a_listing_names_denied_entries_and_a_tree_does_not_enter_them(files, secrets):
    names = [entry.name for entry in list_directory(files, files.roots.place("."), PAGE).entries]
    assert names[:2] == [".env", ".ssh"]
    tree = directory_tree(files, files.roots.place("."), (), Limits(10, 100, 100_000), SearchProgress())["root"]
    assert {"name": ".ssh", "kind": "directory", "error": "denied"} in tree["children"]
    result = search_files(files, files.roots.place("."), Scope("**/config"), PAGE, SearchProgress())
    assert (result["matches"], result["unreadable"]) == ([], 1)


def search_paths(files, pattern, start="."):
    result = search_content(
        files,
        files.roots.place(start),
        Scope(include_ignored=True),
        SearchRequest(Query(pattern)),
        PAGE,
        SearchProgress(),
    )
    return [file["path"] for file in result["files"]], result["unreadable"]


def test_a_content_search_skips_denied_files(files, secrets):
    (secrets / "dir" / "key.pem").write_text("PASSWORD=1")
    (secrets / "dir" / "plain").write_text("PASSWORD=1")
    paths, unreadable = search_paths(files, "PASSWORD")
    assert paths == ["dir/plain"]
    assert unreadable == 3
    assert search_paths(files, "PASSWORD", "dir") == (["plain"], 1)


def test_a_search_across_nested_roots_applies_the_denylist_of_each(root, way):
    for path in ("a/b/c", "a/c", "c", ".ssh/config"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    (root / "link").symlink_to("a")
    roots = [root, root / "a", root / ".ssh"]
    for glob, expected in {
        "a/b/c": (["c", ".ssh/config", "a/c"], 1),
        "b/c": (["c", ".ssh/config", "a/c"], 1),
        "a/c": (["c", ".ssh/config", "a/b/c"], 1),
    }.items():
        files = opened_by(way, Roots(roots, denylist=Denylist([glob])))
        assert search_paths(files, "x", str(root)) == expected
        assert search_paths(files, "x", str(root / "link"))[1] == 1
        files.close()


def test_a_directory_with_a_denied_file_can_be_moved(files, secrets):
    (secrets / ".env").rename(secrets / "dir" / ".env")
    move(files, files.roots.place("dir"), files.roots.place("new"))
    assert (secrets / "new" / ".env").read_text() == "PASSWORD=1"


def test_a_denial_is_the_same_for_existing_and_missing_files(files, secrets):
    errors = set()
    for path in (".env", "none.pem", ".ssh/config", ".ssh/none", ".ssh/config/x"):
        with pytest.raises(PathError) as caught:
            read_bytes(files, files.roots.place(path), 100)
        errors.add((caught.value.code, caught.value.reason, caught.value.suggestion))
    assert len(errors) == 1


def test_the_fingerprint_of_a_denied_file_never_changes(files, secrets):
    before = take_fingerprint(files, files.roots.place("one.txt"))
    (secrets / ".env").write_text("PASSWORD=2")
    assert take_fingerprint(files, files.roots.place("one.txt"), before).content == before.content == b"!denied"


def test_denied_files_are_not_read_without_a_thread(files, secrets):
    class Everywhere:
        def is_local(self, place):
            return True

    small = SmallFiles(files, Everywhere())
    contents = small.read(files.roots.place("dir/plain"))
    assert contents is not None
    assert contents.data == b"a"
    for path in PATHS:
        assert small.read(files.roots.place(path)) is None


def is_denied(files, path):
    try:
        files.stat(files.roots.place(path))
    except PathError as error:
        return error.code == "denied"
    return False


def test_deny_patterns_apply_relative_to_each_enclosing_root(root, way):
    (root / "a" / "b").mkdir(parents=True)
    for path in ("a/b/c", "a/c", "c"):
        (root / path).touch()
    inner = root / "a"
    for glob, expected in {"a/b/c": ["a/b/c"], "b/c": ["a/b/c"], "a/c": ["a/c"]}.items():
        files = opened_by(way, Roots([root, inner], denylist=Denylist([glob])))
        denied = [path for path in ("a/b/c", "a/c", "c") if is_denied(files, f"{root}/{path}")]
        assert denied == expected
        files.close()


def test_a_root_with_a_denied_name_is_allowed(root):
    (root / ".ssh").mkdir()
    (root / ".ssh" / "config").write_text("mine")
    files = RootedFiles(Roots([root / ".ssh"]))
    assert read_bytes(files, files.roots.place("config"), 10).data == b"mine"
    files.close()


def test_a_link_through_dots_is_denied(files, secrets):
    (secrets / "dir" / "link").symlink_to("../dir/../.ssh/../.ssh/config")
    assert code(read_bytes, files, Place(0, ("dir", "link"), "link"), 10) == "denied"

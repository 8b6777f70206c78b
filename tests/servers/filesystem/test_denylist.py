"""Names that stay closed: which they are, and that no way leads to what they name."""

import os
import re
from pathlib import Path

import pytest

from servers.filesystem.edit.move import move
from servers.filesystem.edit.write import create_directory, write_file
from servers.filesystem.read.binary import read_bytes
from servers.filesystem.read.pages import read_text
from servers.filesystem.read.parts import Part
from servers.filesystem.search.content import Wanted, search_content
from servers.filesystem.search.files import Control, Scope, search_files
from servers.filesystem.search.listing import info, list_directory
from servers.filesystem.search.matcher import Query
from servers.filesystem.search.page import Page
from servers.filesystem.search.tree import Limits, directory_tree
from servers.filesystem.watch.fingerprint import look
from shared.kit.errors import PathError
from shared.kit.rooted.denylist import HARMLESS, SECRETS, Denylist
from shared.kit.rooted.entries import Place
from shared.kit.rooted.files import RootedFiles
from shared.kit.rooted.roots import Roots
from shared.kit.rooted.small_reads import SmallFiles
from tests.servers.filesystem.editing_files import edit_file
from tests.shared.kit.rooted.conftest import opened_by

PAGE = Page(100, 100_000)
README = Path(__file__).parents[3] / "servers/filesystem/README.md"


def closed(path, deny=(), allow=()):
    denylist = Denylist(deny, allow)
    return denylist.closes(denylist.start([()]), path.split("/"))


@pytest.mark.parametrize(
    "path",
    [
        *(".env", ".env.production", ".ENV", "a/b/.env", ".netrc", ".git-credentials", ".npmrc"),
        *(".ssh", ".ssh/config", "home/.ssh/known_hosts", ".aws/credentials", ".gnupg/x/y"),
        *("id_rsa", "id_rsa.old", "ID_ED25519", "server.key", "a/cert.pem", "store.KDBX"),
    ],
)
def test_secrets_are_closed(path):
    assert closed(path)


@pytest.mark.parametrize(
    "path",
    [
        *("env", "environment.py", ".envrc", "a.env.py", ".env.example", ".env.sample", "id_rsa.pub", "ssh/config"),
        *(
            "pem",
            "pem.txt",
            "key",
            "keys.py",
            "monkey",
            ".github/x",
            "aws/credentials",
            "credentials.py",
            "secret.txt",
        ),
        *(".gitignore", ".docker/Dockerfile", "\udcff", "\\.env", ""),
    ],
)
def test_other_names_are_not(path):
    assert not closed(path)


def test_the_readme_names_them_all():
    section = README.read_text().split("## What stays closed\n\n")[1].split("\n\n")[0]
    assert sorted(re.findall(r"`(.+?)`", section)) == sorted([*SECRETS, *HARMLESS])


@pytest.mark.parametrize(
    ("glob", "path", "is_closed"),
    [
        ("private", "private", True),
        ("private", "a/private/b", True),
        ("private/", "private/b", True),
        ("Private", "pRIVATE", True),
        ("private", "privates", False),
        ("*.log", "a/b.LOG", True),
        ("tmp*", "a/tmp1/b", True),
        ("a?c", "abc", True),
        ("{a,b}.txt", "b.txt", True),
        ("notes/private", "notes/private/x", True),
        ("notes/private", "NOTES/Private", True),
        ("notes/private", "a/notes/private", False),
        ("notes/private", "notes", False),
        ("notes/private", "notes/b", False),
        ("**/notes/private", "a/b/notes/private/x", True),
        ("notes/**", "notes/x", True),
        ("notes/**", "notes", False),
    ],
)
def test_the_operator_denies_more(glob, path, is_closed):
    assert closed(path, [glob]) == is_closed


@pytest.mark.parametrize(
    ("glob", "path", "is_closed"),
    [
        (".env", ".env", False),
        (".env", "a/.env", False),
        (".env", ".ENV", True),
        (".env", ".env.local", True),
        ("*.pem", "a/b.pem", False),
        ("certs/*.pem", "certs/b.pem", False),
        ("certs/*.pem", "b.pem", True),
        ("certs", "certs/b.pem", True),
        (".ssh", ".ssh/config", False),
        (".ssh", ".ssh/id_rsa", True),
        ("*", ".ssh/id_rsa", False),
    ],
)
def test_the_operator_allows_what_the_list_closes(glob, path, is_closed):
    assert closed(path, allow=[glob]) == is_closed


@pytest.mark.parametrize("allow", ["*", "**", ".env", "private", "a/private"])
def test_f21_allowing_opens_nothing_that_was_denied(allow):
    assert closed("a/private", ["private"], [allow])
    assert closed("a/.env", [".env"], [allow])


@pytest.mark.parametrize("allow", ["*", "**", "/", "/etc", "/etc/passwd", "../root_evil", "~"])
def test_f21_allowing_opens_nothing_outside(root, outside, allow):
    (root / "link").symlink_to(outside / "secret")
    try:
        denylist = Denylist(allow=[allow])
    except PathError:
        return
    roots = Roots([root], denylist=denylist)
    for path in ("/etc/passwd", str(outside / "secret"), "../root_evil/secret", str(Path.home())):
        assert code(roots.place, path) == "outside_roots"
    files = RootedFiles(roots)
    assert code(read_bytes, files, roots.place("link"), 100) == "outside_roots"
    files.close()


def test_what_is_remembered_is_bounded():
    denylist = Denylist()
    way = denylist.start([()])
    for i in range(10_000):
        assert denylist.step(way, f"{i}.pem") is None
    assert denylist._is_closed.cache_info().currsize <= 4_096


# RootedFiles the roots


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


def code(call, *arguments):
    with pytest.raises(PathError) as caught:
        call(*arguments)
    return caught.value.code


@pytest.mark.parametrize("path", PATHS)
def test_what_is_denied_is_neither_read_nor_written_by_any_way(either, secrets, path):
    place = either.roots.place(path)
    assert code(read_bytes, either, place, 1_000) == "denied"
    assert code(read_text, either, place, 1_000, Part(tail=1)) == "denied"
    assert code(write_file, either, place, b"") == "denied"
    assert code(edit_file, either, place, [("a", "b")]) == "denied"
    assert (secrets / ".env").read_text() == "PASSWORD=1"
    assert os.listdir(secrets / ".ssh") == ["config"]


@pytest.mark.parametrize("path", [".env", ".ssh", ".ssh/config", "three.txt/config", ".aws", "dir/.env", "new.pem"])
def test_what_is_denied_is_neither_described_moved_nor_made(either, secrets, path):
    place, plain = either.roots.place(path), either.roots.place("dir/plain")
    assert code(info, either, place) == "denied"
    assert code(move, either, place, either.roots.place("new")) == "denied"
    assert code(move, either, plain, place) == "denied"
    assert code(create_directory, either, either.roots.place(f"{path}/x")) == "denied"
    assert (secrets / "dir" / "plain").read_text() == "a"


@pytest.mark.parametrize("path", [".ssh", "three.txt", ".ssh/none", ".aws"])
def test_what_is_in_a_denied_directory_is_not_told(either, secrets, path):
    place = either.roots.place(path)
    assert code(list_directory, either, place, PAGE) == "denied"
    assert code(search_files, either, place, Scope(), PAGE, Control()) == "denied"
    assert code(search_content, either, place, Scope(), Wanted(Query("m")), PAGE, Control()) == "denied"
    assert code(directory_tree, either, place, (), Limits(10, 100, 100_000), Control()) == "denied"


def test_a_listing_names_it_and_a_tree_does_not_go_in(either, secrets):
    names = [entry.name for entry in list_directory(either, either.roots.place("."), PAGE).entries]
    assert names[:2] == [".env", ".ssh"]
    tree = directory_tree(either, either.roots.place("."), (), Limits(10, 100, 100_000), Control())["root"]
    assert {"name": ".ssh", "kind": "directory", "error": "denied"} in tree["children"]
    found = search_files(either, either.roots.place("."), Scope("**/config"), PAGE, Control())
    assert (found["matches"], found["unreadable"]) == ([], 1)


def told(files, pattern, start="."):
    found = search_content(
        files, files.roots.place(start), Scope(include_ignored=True), Wanted(Query(pattern)), PAGE, Control()
    )
    return [file["path"] for file in found["files"]], found["unreadable"]


def test_a_search_of_contents_tells_nothing_of_it(either, secrets):
    (secrets / "dir" / "key.pem").write_text("PASSWORD=1")
    (secrets / "dir" / "plain").write_text("PASSWORD=1")
    paths, unreadable = told(either, "PASSWORD")
    assert paths == ["dir/plain"]
    assert unreadable == 3
    assert told(either, "PASSWORD", "dir") == (["plain"], 1)


def test_a_search_from_above_keeps_the_rules_of_each_root(root, way):
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
        assert told(files, "x", str(root)) == expected
        assert told(files, "x", str(root / "link"))[1] == 1
        files.close()


def test_a_directory_that_holds_it_is_moved(either, secrets):
    (secrets / ".env").rename(secrets / "dir" / ".env")
    move(either, either.roots.place("dir"), either.roots.place("new"))
    assert (secrets / "new" / ".env").read_text() == "PASSWORD=1"


def test_a_link_of_such_a_name_is_denied(either, secrets):
    (secrets / "key.pem").symlink_to("dir/plain")
    assert code(read_bytes, either, either.roots.place("key.pem"), 100) == "denied"


def test_the_refusal_does_not_tell_whether_it_exists(either, secrets):
    said = set()
    for path in (".env", "none.pem", ".ssh/config", ".ssh/none", ".ssh/config/x"):
        with pytest.raises(PathError) as caught:
            read_bytes(either, either.roots.place(path), 100)
        said.add((caught.value.code, caught.value.reason, caught.value.suggestion))
    assert len(said) == 1


def test_a_watcher_learns_nothing_of_it(either, secrets):
    before = look(either, either.roots.place("one.txt"))
    (secrets / ".env").write_text("PASSWORD=2")
    assert look(either, either.roots.place("one.txt"), before).content == before.content == b"!denied"


def test_what_is_denied_is_not_read_at_once(files, secrets):
    class Everywhere:
        def local(self, place):
            return True

    small = SmallFiles(files, Everywhere())
    held = small.read(files.roots.place("dir/plain"))
    assert held is not None
    assert held.data == b"a"
    for path in PATHS:
        assert small.read(files.roots.place(path)) is None


def is_denied(files, path):
    try:
        files.stat(files.roots.place(path))
    except PathError as error:
        return error.code == "denied"
    return False


def test_a_path_counts_from_each_root_that_a_file_lies_in(root, way):
    (root / "a" / "b").mkdir(parents=True)
    for path in ("a/b/c", "a/c", "c"):
        (root / path).touch()
    inner = root / "a"
    for glob, expected in {"a/b/c": ["a/b/c"], "b/c": ["a/b/c"], "a/c": ["a/c"]}.items():
        files = opened_by(way, Roots([root, inner], denylist=Denylist([glob])))
        denied = [path for path in ("a/b/c", "a/c", "c") if is_denied(files, f"{root}/{path}")]
        assert denied == expected
        files.close()


def test_a_root_of_such_a_name_is_the_operators_word(root):
    (root / ".ssh").mkdir()
    (root / ".ssh" / "config").write_text("mine")
    files = RootedFiles(Roots([root / ".ssh"]))
    assert read_bytes(files, files.roots.place("config"), 10).data == b"mine"
    files.close()


def test_a_link_through_dots_is_denied(files, secrets):
    (secrets / "dir" / "link").symlink_to("../dir/../.ssh/../.ssh/config")
    assert code(read_bytes, files, Place(0, ("dir", "link"), "link"), 10) == "denied"


def test_an_accent_in_another_form_opens_nothing():
    closed = Denylist(["Jos\u00e9*", "a/\u00c9*"])
    start = closed.start([()])
    for name in ("Jos\u00e9.txt", "Jose\u0301.txt", "JOSE\u0301.txt"):
        assert closed.closes(start, [name])
    assert closed.closes(start, ["a", "e\u0301"])
    assert not closed.closes(start, ["Jose.txt"])

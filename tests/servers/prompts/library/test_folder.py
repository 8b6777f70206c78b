"""Files of a folder: read, listed or skipped."""

import os
from pathlib import Path

import pytest

from servers.prompts.errors import PromptError
from servers.prompts.library import folder as module
from servers.prompts.library.folder import Entry, Folder
from tests.servers.prompts.folders import library, write


def refusal(folder: Folder, path: str, most: int = 100) -> str:
    with pytest.raises(PromptError) as caught:
        folder.read(path, most)
    return f"{caught.value.code}: {caught.value}"


def test_a_file_is_read_up_to_a_size_limit(tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    write(tmp_path, {"a/b/c.txt": "four", "large": data})
    folder = Folder(tmp_path)
    assert folder.read("a/b/c.txt", 4) == b"four"
    assert refusal(folder, "a/b/c.txt", 3) == "too_large: 'a/b/c.txt' has more than 3 bytes"
    assert folder.read("large", 3_000_000) == data


def test_links_pipes_and_directories_are_not_found(tmp_path: Path) -> None:
    write(tmp_path, {"dir/file": "x", "file": "x"})
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "linked").symlink_to("dir")
    os.mkfifo(tmp_path / "pipe")
    folder = Folder(tmp_path)
    for path in ("no", "no/file", "dir", "link", "linked/file", "file/x", "pipe"):
        assert refusal(folder, path) == f"not_found: there is no file {path!r}, or it can't be read"
    assert folder.read("dir/file", 1) == b"x"


def test_a_linked_folder_is_read_but_nothing_outside(tmp_path: Path) -> None:
    write(tmp_path, {"secret": "x", "lib/a/file": "x"})
    (tmp_path / "link").symlink_to("lib")
    folder = Folder(tmp_path / "link")
    assert folder.read("a/file", 1) == b"x"
    assert [one.path for one in folder.children("a")] == ["a/file"]
    assert refusal(folder, "../secret") == "not_found: '../secret' has an empty name, . or .. in it"
    assert folder.children("..") == []


def walked(folder: Path, known: dict[str, module.Signature] | None = None) -> list[tuple[str, str, bytes | None]]:
    found = Folder(folder).walk(frozenset({".in"}), known or {})
    return [(one.path, one.kind, one.data) for one in found]


def test_a_walk_yields_files_first_and_reads_only_markdown(tmp_path: Path) -> None:
    write(tmp_path, {"b.md": "B", "a/c.md": "C", "a/d.txt": "D", ".in/e.md": "E", ".out/f.md": "F", "z.md": "Z"})
    (tmp_path / "link.md").symlink_to("b.md")
    (tmp_path / "linked").symlink_to("a")
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "x.md").mkdir()
    assert walked(tmp_path) == [
        ("b.md", "file", b"B"),
        ("link.md", "link", None),
        ("linked", "link", None),
        ("pipe.md", "other", None),
        ("z.md", "file", b"Z"),
        (".in", "directory", None),
        (".in/e.md", "file", b"E"),
        ("a", "directory", None),
        ("a/c.md", "file", b"C"),
        ("a/d.txt", "file", None),
        ("x.md", "directory", None),
    ]


def test_a_walk_reads_only_the_manifest_of_a_skill(tmp_path: Path) -> None:
    read = {"a/SKILL.md", "a/old/SKILL.md", "b/X.MD", "c/skill.md"}
    write(tmp_path, dict.fromkeys([*read, "a/forms.md", "a/old/x.md", "a/NO-SKILL.md", "c/x.md"], "x"))
    assert {path for path, _, data in walked(tmp_path) if data} == read


def test_a_file_with_a_known_signature_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "A", "b.md": "B"})
    known = {one.path: one.signature for one in Folder(tmp_path).children("") if one.signature is not None}
    write(tmp_path, {"b.md": "newer"})
    assert walked(tmp_path, known) == [("a.md", "file", None), ("b.md", "file", b"newer")]


def test_a_walk_stops_below_sixteen_levels(tmp_path: Path) -> None:
    deep = "/".join("d" * 16)
    write(tmp_path, {f"{deep}/a.md": "A", f"{deep}/d/b.md": "B"})
    assert [path for path, kind, _ in walked(tmp_path) if kind == "file"] == [f"{deep}/a.md"]


def test_a_library_with_too_many_files_keeps_its_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_FILES", 3)
    text = "---\ndescription: x\n---\nSay it."
    found = library(tmp_path, {"a.md": text, "dir/b.md": text})
    assert (found.names, found.problems()) == (["a", "dir-b"], [])
    write(tmp_path, {"dir/c.md": text})
    found.scan()
    assert found.names == ["a", "dir-b"]
    assert [str(one) for one in found.problems()] == ["the library has more than 3 files"]
    with pytest.raises(PromptError) as caught:
        walked(tmp_path)
    assert caught.value.code == "too_large"


def test_a_directory_listing_stops_after_the_file_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_FILES", 3)
    write(tmp_path, dict.fromkeys("abcdef", "x"))
    assert len(Folder(tmp_path).children("")) == 4


def test_executable_files_are_recognized(tmp_path: Path) -> None:
    write(tmp_path, {"bin/run": "x", "bin/data": "x"})
    (tmp_path / "bin/run").chmod(0o700)
    (tmp_path / "bin/data").chmod(0o655)
    (tmp_path / "bin/link").symlink_to("run")
    (tmp_path / "linked").symlink_to("bin")
    folder = Folder(tmp_path)
    paths = ("bin/run", "bin/data", "bin/no", "linked/run")
    assert [folder.is_executable(path) for path in paths] == [True, False, False, False]


def test_a_directory_that_disappears_is_skipped(tmp_path: Path) -> None:
    write(tmp_path, {"a/x.md": "X", "b/y.md": "Y", "c.md": "C"})
    found = Folder(tmp_path).walk(frozenset(), {})
    assert next(found) == Entry("c.md", "file", Folder(tmp_path).children("")[2].signature, b"C")
    (tmp_path / "a/x.md").unlink()
    (tmp_path / "a").rmdir()
    assert [one.path for one in found] == ["b", "b/y.md"]

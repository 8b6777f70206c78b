"""Unified diffs as edits."""

import difflib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.filesystem.edit.patch import read_patch
from servers.filesystem.edit.replacements import apply_edits
from servers.filesystem.errors import FilesError
from tests.servers.filesystem.editing_files import code

HEADER = "--- a/f\n+++ b/f\n"
LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "-- \n", "  c\n", "++ d\n"]), max_size=12)


def applied(text: str, patch: str) -> str:
    (file,) = read_patch(patch)
    return apply_edits(text, file.edits).after


def hunk(*lines: str, at: str = "") -> str:
    return f"{HEADER}@@{at} @@\n" + "".join(f"{line}\n" for line in lines)


@given(LINES, LINES)
def test_a_diff_of_difflib_turns_the_old_text_into_the_new(before: list[str], after: list[str]) -> None:
    patch = "".join(difflib.unified_diff(["first\n", *before], ["first\n", *after], "a/f", "b/f"))
    if patch:
        assert applied("".join(["first\n", *before]), patch) == "".join(["first\n", *after])


def test_a_diff_of_git_over_several_files_is_read(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        options = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        return subprocess.run(
            ["git", *options, *arguments], cwd=tmp_path, capture_output=True, check=True, text=True
        ).stdout

    for name in ("one", "two"):
        (tmp_path / name).write_text(f"{name}\nsame\nend")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"{name}\nother\nend\n")
    files = read_patch(git("diff"))
    assert [file.path for file in files] == ["one", "two"]
    for file in files:
        assert apply_edits(f"{file.path}\nsame\nend", file.edits).after == (tmp_path / file.path).read_text()


def test_the_line_number_of_a_hunk_chooses_among_several_matches() -> None:
    text = "a\nb\n" * 4
    assert applied(text, hunk(" a", "-b", "+c", at=" -5,2 +5,2")) == "a\nb\na\nb\na\nc\na\nb\n"
    (file,) = read_patch(hunk(" a", "-b", "+c", at=" -2,2 +2,2"))
    assert code(apply_edits, text, file.edits) == "ambiguous_match"


def test_a_hunk_matches_at_another_line_and_with_other_indentation() -> None:
    assert applied("x\n" * 9 + "a\nb\n", hunk(" a", "-b", "+c", at=" -1,2 +1,2")) == "x\n" * 9 + "a\nc\n"
    assert applied("if a:\n\tb\n\tc\n", hunk(" if a:", "-    b", "+    d", "     c")) == "if a:\n\td\n\tc\n"


def test_a_hunk_matches_whole_lines_only() -> None:
    assert applied("xa\na\n", hunk("-a", "+b")) == "xa\nb\n"


def test_a_patch_keeps_the_line_ends_of_the_file() -> None:
    assert applied("a\r\nb\r\n", hunk(" a", "-b", "+c")) == "a\r\nc\r\n"


@pytest.mark.parametrize(
    ("before", "lines", "after"),
    [
        ("x\na", ["-a", "\\", "+b", "\\"], "x\nb"),
        ("a\na", ["-a", "\\", "+b"], "a\nb\n"),
        ("x\na\n", ["-a", "+a", "\\"], "x\na"),
        # The file no longer ends as the hunk says.
        ("x\na\n", ["-a", "\\", "+a"], "x\na\n"),
        ("a\ny\n", ["-a", "+b", "\\"], "b\ny\n"),
    ],
)
def test_a_line_without_a_newline_matches_the_last_line_only(before: str, lines: list[str], after: str) -> None:
    assert applied(before, hunk(*lines)) == after


def test_a_line_without_a_newline_does_not_match_the_start_of_a_line() -> None:
    (file,) = read_patch(hunk("-a", "\\", "+b", "\\"))
    assert code(apply_edits, "x\nab\ny\n", file.edits) == "no_match"


def test_the_signature_of_a_git_mail_deletes_no_line() -> None:
    assert applied("a\nb\n", hunk("-a", "+c", " b", "-- ", "2.39.5", "")) == "c\nb\n"
    assert applied("a\n- \n", hunk(" a", "-- ")) == "a\n"


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('"a/\\303\\274 \\"\\t"', '"b/\\303\\274 \\"\\t"', 'ü "\t'),
        ("a/f g\t", "b/f g\t", "f g"),
        ("i/f", "w/f", "f"),
        ("a/f", "a/f", "a/f"),
        ("f\t2026-01-01", "f\t2026-01-02", "f"),
    ],
)
def test_paths_of_git_and_diff_are_read(old: str, new: str, path: str) -> None:
    assert [file.path for file in read_patch(f"--- {old}\n+++ {new}\n@@\n-a\n+b\n")] == [path]


def test_empty_lines_without_a_space_and_wrong_counts_are_read() -> None:
    assert applied("a\n\nb\n", hunk(" a", "", "-b", "+c", at=" -1,9 +1,9")) == "a\n\nc\n"
    patch = hunk("-a", "+b") + "\n@@ -5 +5 @@\n-c\n+d\n"
    assert applied("a\nx\nx\nx\nc\n", patch) == "b\nx\nx\nx\nd\n"


def test_file_headers_of_codex_are_read() -> None:
    [first, second] = read_patch(
        "*** Begin Patch\n*** Update File: a b.py\n@@ def f():\n-a\n+b\n*** End of File\n"
        "*** Update File: c\n@@\n c\n-*** Update File: x\n+d\n@@\n-e\n+f\n*** End Patch\n"
    )
    assert (first.path, [edit[:2] for edit in first.edits]) == ("a b.py", [("a\n", "b\n")])
    assert (second.path, [edit[:2] for edit in second.edits]) == (
        "c",
        [("c\n*** Update File: x\n", "c\nd\n"), ("e\n", "f\n")],
    )
    [both] = read_patch("*** Update File: a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n")
    assert (both.path, len(both.edits)) == ("a.py", 1)
    # The first hunk needs no header, and a file may have several ones.
    patch = "*** Update File: f\n a\n+b\n*** Update File: g\n-x\n*** Update File: f\n@@\n-c\n+d\n"
    assert [(file.path, len(file.edits)) for file in read_patch(patch)] == [("f", 2), ("g", 1)]
    assert apply_edits("a\nc\n", read_patch(patch)[0].edits).after == "a\nb\nd\n"


@pytest.mark.parametrize("indent", ["    ", "  "])
@pytest.mark.parametrize(
    ("headings", "number"),
    [
        ("@@ class B:\n@@     def f(self):\n", 2),
        ("@@ class B:\n", 2),
        ("@@ class C: @@\n@@ @late\n@@ def f(self):\n", 4),
        ("@@ def f(self):\n", None),
        ("@@ class D:\n", None),
        ("@@ class B:\n@@ def g(self):\n", None),
        ("@@\n", None),
    ],
)
def test_headings_of_codex_choose_among_several_matches(headings: str, number: int | None, indent: str) -> None:
    body = "    def f(self):\n        return 0\n"
    text = f"class A:\n{body}class B:\n{body}class C:\n{body}    @late\n{body}"
    [file] = read_patch(f"*** Update File: a.py\n{headings}-{indent * 2}return 0\n+{indent * 2}return 1\n")
    if number is None:
        assert code(apply_edits, text, file.edits) == "ambiguous_match"
        return
    before = text.split("return 0")
    expected = "return 0".join(before[:number]) + "return 1" + "return 0".join(before[number:])
    assert apply_edits(text, file.edits).after == expected


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        (
            "*** Begin Patch\n*** Add File: a\n+b\n*** End Patch\n",
            "line 2 of the patch creates a new file: use write",
        ),
        ("*** Update File: a\n*** Move to: b\n@@\n-a\n+b\n", "line 2 of the patch renames a file: use move_file"),
        ("*** Delete File: a\n", "line 1 of the patch deletes a file: use delete_file"),
        ("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", "line 1 of the patch creates a new file: use write_file"),
        ("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "line 1 of the patch deletes a file: use delete_file"),
        (
            "--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n",
            "line 2 of the patch names a different file than the line before",
        ),
        ("diff --git a/f b/g\nrename from f\nrename to g\n", "line 2 of the patch renames a file: use move_file"),
        ("@@ -1 +1 @@\n-a\n+b\n", "line 1 of the patch begins a hunk, but no `+++ b/PATH` line precedes it"),
        (HEADER + "@@ -1,0 +2 @@\n+b\n", "line 3 of the patch has no context lines: include unchanged lines around"),
        ("a\nb\n", "there is no hunk"),
        (
            hunk("-a", "+b") + "diff --git a/g b/g\nnew file mode 100644\n",
            "line 7 of the patch creates a new file: use write_file",
        ),
        (
            hunk("-a", "+b") + "diff --git a/g b/g\ndeleted file mode 100644\n",
            "line 7 of the patch deletes a file: use delete_file",
        ),
        (hunk("-a", "+b") + "Binary files a/g and b/g differ\n", "line 6 of the patch changes a binary file"),
        (hunk("-a", "+b") + "Only in b: g\n", "line 6 of the patch names a file that exists on one side only"),
        (HEADER + "@@@ -1 -1 +1 @@@\n--a\n++b\n", "line 3 of the patch begins a merge hunk"),
        (
            hunk(" a", "...", "-b", "+c"),
            "line 5 of the patch is within a hunk but does not begin with a space, + or -",
        ),
        ("".join(f"--- f{number}\n+++ f{number}\n@@\n-a\n" for number in range(101)), "it has more than 100 files"),
    ],
)
def test_invalid_patches_are_refused_with_the_reason(patch: str, reason: str) -> None:
    with pytest.raises(FilesError) as caught:
        read_patch(patch)
    assert caught.value.code == "bad_patch"
    assert reason in str(caught.value)

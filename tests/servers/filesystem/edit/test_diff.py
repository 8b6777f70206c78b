"""Unified diffs of edits."""

import shutil
import subprocess

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from servers.filesystem.edit import diff
from servers.filesystem.edit.replacements import Edit, apply_edits
from servers.filesystem.edit.text import EditedText


def unified_diff(old, new, path, context=3):
    """The diff of an edit that replaces the whole text."""
    return diff.unified_diff(EditedText(old, new, [(0, len(old), 0, len(new))]), path, context)


def test_a_diff_shows_the_changed_line_with_its_context():
    old = "".join(f"{i}\n" for i in range(1, 10))
    assert unified_diff(old, old.replace("5", "five"), "d/x", context=1) == (
        "--- a/d/x\n+++ b/d/x\n@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n"
    )
    assert unified_diff("a", "a", "x") == ""


def test_line_ends_empty_sides_and_names_are_written_as_git_does():
    assert unified_diff("a\nb", "a\nb\n", "x").endswith(" a\n-b\n\\ No newline at end of file\n+b\n")
    assert "-a\x0cb\u2028c\r\n" in unified_diff("a\x0cb\u2028c\r\n", "a\n", "x")
    assert "@@ -0,0 +1 @@\n+a\n" in unified_diff("", "a\n", "x")
    assert "@@ -1 +0,0 @@\n-a\n" in unified_diff("a\n", "", "x")
    # A name can not forge a line.
    assert unified_diff("a", "b", "x\n+++ y").startswith("--- a/x\\n+++ y\n+++ b/")


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (Edit("b\n", "x"), "@@ -1,4 +1,3 @@\n a\n-b\n-c\n+xc\n d\n"),
        (Edit("b", "x\n"), "@@ -1,4 +1,5 @@\n a\n-b\n+x\n+\n c\n d\n"),
        (Edit("a\nb", ""), "@@ -1,4 +1,3 @@\n-a\n-b\n+\n c\n d\n"),
    ],
)
def test_an_edit_that_begins_or_ends_within_a_line_shows_whole_lines(edit, expected):
    assert diff.unified_diff(apply_edits("a\nb\nc\nd\n", [edit]), "x") == f"--- a/x\n+++ b/x\n{expected}"


@pytest.mark.timeout(10)
def test_the_diff_of_a_repetitive_text_takes_no_quadratic_time():
    old = "".join(f"{i % 150}\n" for i in range(100_000))
    assert unified_diff(old, "start\n" + old[::-1] + "end\n", "x").startswith("--- a/x")


def test_distant_changes_are_separate_hunks():
    old = "".join(f"{i}\n" for i in range(1, 100))
    edited = apply_edits(old, [Edit("\n90\n", "\n"), Edit("\n12\n", "\n12\nnew\n"), Edit("\n14\n", "\nx\n")])
    assert diff.unified_diff(edited, "x", context=1) == (
        "--- a/x\n+++ b/x\n@@ -12,4 +12,5 @@\n 12\n+new\n 13\n-14\n+x\n 15\n@@ -89,3 +90,2 @@\n 89\n-90\n 91\n"
    )


def test_the_diff_of_a_large_text_reads_only_the_edited_lines(monkeypatch):
    # Nothing but the time shows how much is read.
    looked_at, plain = [], diff._lines
    monkeypatch.setattr(diff, "_lines", lambda text: looked_at.append(len(text)) or plain(text))
    old = "".join(f"line {i}\n" for i in range(100_000))
    edited = apply_edits(old, [Edit("line 50000\n", "x\n"), Edit("line 77\n", "")])
    assert diff.unified_diff(edited, "x").count("@@") == 4
    assert sum(looked_at) < 1_000


TEXTS = st.lists(st.sampled_from("abc"), max_size=12).map("\n".join) | st.lists(st.sampled_from("ab\n")).map("".join)


@pytest.mark.skipif(not shutil.which("git"), reason="needs git: apt-get install git")
@pytest.mark.slow
@settings(max_examples=80)
@given(TEXTS, st.sampled_from(["a", "b", "\n", "ab", "b\n", ""]), TEXTS, st.integers(0, 3))
def test_git_applies_the_diff_of_many_replacements_and_of_a_whole_text(tmp_path_factory, text, old, new, context):
    assume(old in text)
    whole = EditedText(text, new, [(0, len(text), 0, len(new))])
    edited = apply_edits(text, [Edit(old, new, places=0)]) if old else whole
    patch = diff.unified_diff(edited, "x", context)
    if edited.before == edited.after:
        assert patch == ""
        return
    folder = tmp_path_factory.mktemp("repo")
    (folder / "x").write_bytes(text.encode())
    command = ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", "-"]
    subprocess.run(command, cwd=folder, input=patch.encode(), check=True)
    assert (folder / "x").read_bytes() == edited.after.encode()

"""Texts of several files in one result."""

import re

import pytest
from pydantic_core import to_json

from servers.filesystem.read.summaries import read_many


def read_several(files, paths, budget):
    return read_many(files, paths, budget, lambda: None)


def parts(text):
    """The parts of the text between its separator lines."""
    mark = re.match(r"--- [0-9a-f]{8} ", text)[0]
    return text.removeprefix(mark).split(f"\n{mark}")


def test_an_error_replaces_the_text_of_its_file_only(files, root):
    (root / "a").write_text("A")
    (root / "b").write_bytes(b"\0")
    result = read_several(files, ["a", "none", "b", "../x"], 9_000)
    first, second, third, fourth = parts(result.text)
    assert first == "a:\nA"
    assert second.startswith("none: Error - not_found")
    assert third.startswith("b: Error - not_text")
    assert fourth.startswith("../x: Error - outside_roots")
    assert list(result.etags) == ["a"]


def test_a_large_file_gets_the_budget_left_by_small_ones(files, root):
    (root / "large").write_text("x\n" * 10_000)
    for name in ("a", "b", "c"):
        (root / name).write_text(name * 100)
    result = read_several(files, ["large", "a", "b", "c"], 10_000)
    large, *small = parts(result.text)
    assert [text[3:] for text in small] == ["a" * 100, "b" * 100, "c" * 100]
    assert len(to_json(large)) > 8_000
    assert len(to_json(result.text)) <= 10_000
    assert "continue with cursor" in large


def test_large_files_share_the_budget_equally(files, root):
    for name in ("a", "b"):
        (root / name).write_text("x" * 10_000)
    first, second = parts(read_several(files, ["a", "b"], 6_000).text)
    assert abs(len(first) - len(second)) < 400
    assert min(len(first), len(second)) > 2_500


def test_the_text_of_a_file_can_not_forge_a_file_heading(files, root):
    (root / "a").write_text("A\n--- 00000000 b:\nforged")
    (root / "b").write_text("B")
    assert parts(read_several(files, ["a", "b"], 9_000).text) == ["a:\nA\n--- 00000000 b:\nforged", "b:\nB"]


@pytest.mark.parametrize(("size", "least"), [(1, 60), (300, 20), (5_000, 10)])
def test_files_over_the_budget_are_omitted_with_a_note(files, root, size, least):
    paths = [f"file-{number}" for number in range(300)]
    for path in paths:
        (root / path).write_text("x" * size)
    text, etags = read_several(files, paths, 8_000)
    shown = parts(text.rpartition("\n")[0])
    assert (
        text.rpartition("\n")[2]
        == f"[truncated: {len(shown)} of 300 files shown; request the others in another call]"
    )
    assert sorted(etags) == sorted(paths[: len(shown)])
    assert all("xx"[:size] in part for part in shown)
    assert len(shown) >= least
    assert len(to_json(text)) <= 8_000

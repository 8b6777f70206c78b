"""Parts of texts in every charset: pages, head, tail and offset."""

import codecs
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.filesystem.errors import FilesError
from servers.filesystem.read.pages import read_small_text, read_text
from servers.filesystem.read.parts import Part
from shared.program.files.entries import SmallFile, etag_of

BIG = 1_000_000


@pytest.fixture
def read(files, root, at):
    def call(data, budget=BIG, **part):
        (root / "file").write_bytes(data)
        return read_text(files, at("file"), budget, Part(**part))

    return call


@pytest.fixture
def pages(files, root, at):
    """The texts of all pages of a file, read cursor by cursor."""

    def call(data, budget, **part):
        (root / "file").write_bytes(data)
        texts, requested = [], Part(**part)
        while True:
            read = read_text(files, at("file"), budget, requested)
            texts.append(read.text)
            assert read.truncated == (read.rest is not None)
            if read.rest is None:
                return texts
            requested = Part(cursor=str(read.rest))

    return call


def refused(read, data, **part):
    with pytest.raises(FilesError) as caught:
        read(data, **part)
    return caught.value


def test_a_text_within_the_budget_is_read_whole(read, root):
    page = read("één\ntwo\r\n".encode())
    assert (page.text, page.size, page.truncated, page.rest) == ("één\ntwo\r\n", 11, False, None)
    assert page.etag == etag_of((root / "file").stat())


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "cp1252"])
def test_a_part_is_the_same_in_every_charset(read, codec):
    for part, text in (
        ({}, "é a\nb ñ\nc\n"),
        ({"head": 2}, "é a\nb ñ\n"),
        ({"tail": 2}, "b ñ\nc\n"),
        ({"offset": 2, "head": 1}, "b ñ\n"),
    ):
        page = read("é a\nb ñ\nc\n".encode(codec), **part)
        assert page.text == text
        assert page.charset.name in (codec, codec.removesuffix("-sig"), f"{codec}-le")


def test_an_error_about_a_binary_file_names_the_byte(read):
    for data, offset in (
        (b"ab\0c\xff", 2),
        (b"\xef\xbb\xbfx\xff", 4),
        ("é".encode() + b"\xe9 ", 2),
        (b"\xff\xfea\0\0\0", 4),
    ):
        error = refused(read, data)
        assert (error.code, error.reason) == ("not_text", f"is not text (byte {offset})")
        assert "read_media_file" in error.suggestion
        assert refused(read, data, tail=9).code == "not_text"


def test_a_text_with_later_bytes_that_are_not_utf_8_is_read_as_cp1252(pages, read):
    data = b"plain\n" * 20_000 + b"caf\xe9\n" * 3
    assert "".join(pages(data, 10_000)) == data.decode("cp1252")
    assert read(data, tail=2).text == "café\ncafé\n"


# Pages


def test_a_page_ends_with_a_line_and_has_a_cursor(read, pages):
    page = read(b"one\ntwo\nthree\n", budget=11)
    assert (page.text, page.truncated) == ("one\ntwo\n", True)
    assert (page.rest.position, page.rest.line, page.rest.lines_left) == (8, 3, 0)
    assert [read(b"x" * size, budget=10).truncated for size in (10, 11)] == [False, True]
    # A long line is cut between characters.
    assert read("ééééé".encode(), budget=5).text == "éé"
    assert pages("😀😀".encode(), 7) == ["😀", "😀"]


def test_the_budget_counts_the_text_as_json(pages):
    for text in ('"' * 900, "\x01" * 900, "\n" * 900, "é" * 900, "x" * 500 + "\x01" * 400):
        texts = pages(text.encode(), 1_000)
        assert "".join(texts) == text
        assert all(len(to_json(page)) - 2 <= 1_000 for page in texts)
        assert len(texts) <= 2 * len(to_json(text)) // 1_000 + 1


CODECS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])


@given(st.lists(st.text("aé☃😀\n\r", max_size=9)).map("".join), st.integers(6, 40), CODECS)
def test_the_pages_join_to_the_whole_text(pages, text, budget, codec):
    data = text.encode(codec) if codec != "utf-16-be" else codecs.BOM_UTF16_BE + text.encode(codec)
    assert "".join(pages(data, budget)) == text.removeprefix("\ufeff")


def test_the_cost_of_a_page_does_not_depend_on_its_position(files, root, at):
    (root / "file").write_bytes(b"0123456789abcde\n" * 60_000)
    counting = Counting(b"0123456789abcde\n" * 60_000, (root / "file").stat())
    part, counts = Part(), []
    while True:
        before = sum(counting.counts)
        read = read_small_text(counting, at("file"), 90_000, part)
        counts.append(sum(counting.counts) - before)
        if read.rest is None:
            break
        part = Part(cursor=str(read.rest))
    assert len(counts) == 12
    assert max(counts[1:]) < 91_000


class Counting(SmallFile):
    """A source that records how many bytes are read from it."""

    counts: list[int] = []  # noqa: RUF012

    def read(self, position, count):
        self.counts.append(count)
        return super().read(position, count)


@pytest.mark.parametrize(("data", "to"), [(b"one\n" * 9, b"two\n" * 9), (b"one\n" * 9, b"one\n" * 8)])
def test_a_cursor_of_a_changed_file_is_refused(read, files, root, at, data, to):
    cursor = str(read(data, budget=20).rest)
    (root / "new").write_bytes(to)
    (root / "new").replace(root / "file")
    with pytest.raises(FilesError, match=r"has changed since\. Read it from the start again") as caught:
        read_text(files, at("file"), 20, Part(cursor=cursor))
    assert caught.value.code == "changed"


def test_invalid_cursors_are_refused_and_forged_ones_stay_in_the_file(files, root, at, read):
    etag = "0123456789abcdef"
    for cursor in ("", "x", f"{etag}.1.1.0.zlib", f"{etag}.-1.1.0.utf-8", f"{etag}.1.1.0.utf-8 "):
        assert refused(read, b"a", cursor=cursor).code == "bad_range"
    (root / "file").write_text("één", "utf-8")
    etag = etag_of((root / "file").stat())
    for position, text in ((999_999_999, ""), (4, "n"), (0, "één")):
        assert read_text(files, at("file"), BIG, Part(cursor=f"{etag}.{position}.1.0.utf-8")).text == text


# Lines


PARTS = [
    *[({"head": 1}, "a\n"), ({"head": 2}, "a\nb\n"), ({"head": 3}, "a\nb\nc"), ({"head": 9}, "a\nb\nc")],
    *[({"offset": 1}, "a\nb\nc"), ({"offset": 2}, "b\nc"), ({"offset": 3}, "c"), ({"offset": 2, "head": 1}, "b\n")],
    *[({"tail": 1}, "c"), ({"tail": 2}, "b\nc"), ({"tail": 3}, "a\nb\nc"), ({"tail": 9}, "a\nb\nc")],
]


def test_head_tail_and_offset_choose_lines(read):
    for part, text in PARTS:
        page = read(b"a\nb\nc", **part)
        assert (page.text, page.truncated) == (text, False), part
        if "tail" in part:
            assert read(b"a\nb\nc\n", **part).text == f"{text}\n"


@pytest.mark.parametrize("size", [0, 4_096])
def test_tail_works_on_files_with_a_wrong_reported_size(at, size):
    class Reported(SmallFile):
        """A file of /proc or /sys."""

        @property
        def size(self):
            return size

    read = read_small_text(Reported(b"a\nb\nc\n", os.stat_result([0] * 10)), at("file"), BIG, Part(tail=2))
    assert (read.text, read.truncated) == ("b\nc\n", False)


def test_an_offset_beyond_the_end_is_refused_with_the_number_of_lines(read):
    for data, count in ((b"a\nb\nc", "3 lines"), (b"a\nb\nc\n", "3 lines"), (b"", "0 lines"), (b"\n", "1 line")):
        error = refused(read, data, offset=4)
        assert (error.code, error.reason) == ("bad_range", f"has {count}, so there is no line 4")


@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_an_offset_of_80000_lines_is_read(read, codec):
    lines = [f"line {i}\n" for i in range(90_000)]
    assert read("".join(lines).encode(codec), offset=80_001, head=2).text == "".join(lines[80_000:80_002])


def test_a_cursor_keeps_the_requested_range_of_lines(pages):
    assert pages(b"a\nb\nc\nd\ne\nf\n", 5, offset=2, head=4) == ["b\n", "c\n", "d\n", "e\n"]


def test_counting_lines_to_an_offset_can_be_cancelled(files, root, at):
    (root / "file").write_bytes(b"\n" * BIG)

    def cancelled():
        raise KeyError

    with pytest.raises(KeyError):
        read_text(files, at("file"), BIG, Part(offset=999_999), cancelled)


def test_a_tail_over_the_budget_keeps_the_end(read):
    page = read(b"one\ntwo\nthree\n", tail=3, budget=13)
    assert (page.text, page.truncated) == ("two\nthree\n", True)
    assert read("ééééé".encode(), tail=1, budget=5).text == "éé"


@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-32", "cp932"])
def test_a_tail_can_span_blocks(read, codec):
    lines = [f"これは日本語の {i}\n" for i in range(30_000)]
    assert read("".join(lines).encode(codec), tail=20_000).text == "".join(lines[10_000:])


def test_a_truncated_tail_begins_with_a_whole_character(read):
    text = "日本語です" * 9_000
    for codec in ("utf-8", "utf-16", "cp932"):
        page = read(text.encode(codec), tail=1, budget=9_001)
        assert (len(page.text), text.endswith(page.text)) == (3_000, True)
    for mark, codec in ((b"", "utf-16"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        assert read(mark + ("😀" * 9_000).encode(codec), tail=1, budget=9_001).text == "😀" * 2_250


def test_contradictory_and_nonpositive_ranges_are_refused(read):
    both = ({"head": 1, "tail": 1}, {"offset": 2, "tail": 1}, {"cursor": "x", "head": 1})
    for part in (*both, {"head": 0}, {"tail": 0}, {"head": -1}, {"offset": 0}):
        assert refused(read, b"a", **part).code == "bad_range", part


@pytest.mark.parametrize("part", [{}, {"head": 1}, {"tail": 1}])
def test_a_huge_line_is_cut_to_the_budget(files, root, at, part):
    with (root / "file").open("wb") as file:
        file.write(b"x" * 200_000)
        file.seek(600_000_000)
        file.write(b"x" * 200_000)
    page = read_text(files, at("file"), 100_000, Part(**part))
    assert 99_000 < len(page.text) <= 100_000
    assert page.truncated


@given(st.lists(st.text("aé😀\n", max_size=9)).map("".join), st.integers(6, 40), st.integers(1, 6))
def test_head_and_tail_agree_with_the_whole_text(read, text, budget, count):
    lines = text.splitlines(keepends=True)
    head = read(text.encode(), budget, head=count)
    expected = "".join(lines[:count])
    assert expected.startswith(head.text)
    assert head.truncated == (head.text != expected) == (len(to_json(expected)) - 2 > budget)
    tail = read(text.encode(), budget, tail=count)
    expected = "".join(lines[-count:])
    assert expected.endswith(tail.text)
    assert tail.truncated == (tail.text != expected) == (len(to_json(expected)) - 2 > budget)


def test_files_of_proc_without_a_size_are_read():
    files = RootedFiles(Roots([Path("/proc/self")]))
    assert "Pid" in read_text(files, files.roots.place("status"), BIG).text
    files.close()


def test_a_file_whose_name_is_not_utf_8_is_read(files, root):
    (root / os.fsdecode(b"caf\xe9")).write_text("hello")
    assert read_text(files, files.roots.place(f"{root.as_uri()}/caf%E9"), BIG).text == "hello"

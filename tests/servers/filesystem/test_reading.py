import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.filesystem.access.beneath import Handle
from servers.filesystem.errors import FilesError
from servers.filesystem.reading.read import TextRead, _from_start, _tail, mime_of, read_bytes, read_text

BIG = 1_000_000


@pytest.fixture
def read(files, root, at):
    def call(data, max_bytes=BIG, **lines):
        (root / "file").write_bytes(data)
        return read_text(files, at("file"), max_bytes, **lines)

    return call


def refused(read, data, **lines):
    with pytest.raises(FilesError) as caught:
        read(data, **lines)
    return caught.value


def test_a_whole_text(read):
    assert read("één\ntwo\r\n".encode()) == TextRead("één\ntwo\r\n", 11, False, 2, None)


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)])
def test_lines_are_counted(read, text, lines):
    assert read(text.encode()).total_lines == lines


def test_a_byte_order_mark_is_left_out(read):
    assert read(b"\xef\xbb\xbfabc").text == read(b"\xef\xbb\xbfabc", tail=5).text == "abc"


@pytest.mark.parametrize(
    ("data", "offset"),
    [(b"caf\xe9 \xf1", 3), (b"ab\0c\xff", 2), (b"\xff\xfea\0", 0), (b"\xef\xbb\xbfx\xff", 4), (b"ab\xc3", 2)],
)
def test_what_is_no_text_names_the_offset(read, data, offset):
    error = refused(read, data)
    assert (error.code, error.reason) == ("not_text", f"is not UTF-8 text (byte {offset})")
    assert "read_media_file" in error.suggestion
    assert refused(read, data, tail=9).reason == error.reason


def test_a_text_over_the_budget_ends_with_a_line(read):
    assert read(b"one\ntwo\nthree\n", max_bytes=10) == TextRead("one\ntwo\n", 14, True, None, 3)


def test_a_long_line_is_cut_between_characters(read):
    assert read("ééééé".encode(), max_bytes=5) == TextRead("éé", 10, True, None, 1)
    assert read("😀😀".encode(), max_bytes=7).text == "😀"


def test_a_text_of_exactly_the_budget_is_whole(read):
    assert not read(b"x" * 10, max_bytes=10).truncated
    assert read(b"x" * 11, max_bytes=10).truncated


@pytest.mark.parametrize(
    ("head", "text", "next_line"), [(1, "a\n", 2), (2, "a\nb\n", 3), (3, "a\nb\nc", None), (9, "a\nb\nc", None)]
)
def test_the_first_lines(read, head, text, next_line):
    found = read(b"a\nb\nc", head=head)
    assert (found.text, found.next_line, found.truncated) == (text, next_line, False)


def test_exactly_all_lines_are_the_whole(read):
    assert read(b"a\nb\n", head=2) == TextRead("a\nb\n", 4, False, 2, None)


@pytest.mark.parametrize(("tail", "text"), [(1, "c\n"), (2, "b\nc\n"), (3, "a\nb\nc\n"), (9, "a\nb\nc\n")])
def test_the_last_lines(read, tail, text):
    assert read(b"a\nb\nc\n", tail=tail).text == text


def test_the_last_line_without_an_end(read):
    assert read(b"a\nb", tail=1).text == "b"


def test_last_lines_over_the_budget_keep_the_end(read):
    found = read(b"one\ntwo\nthree\n", tail=3, max_bytes=10)
    assert (found.text, found.truncated) == ("two\nthree\n", True)
    assert read("ééééé".encode(), tail=1, max_bytes=5).text == "éé"


def test_last_lines_across_blocks(read):
    lines = [f"line {i}\n" for i in range(30_000)]
    assert read("".join(lines).encode(), tail=20_000).text == "".join(lines[10_000:])


@pytest.mark.parametrize("lines", [{"head": 1, "tail": 1}, {"head": 0}, {"tail": 0}, {"head": -1}])
def test_impossible_ranges(read, lines):
    assert refused(read, b"a", **lines).code == "bad_range"


@pytest.mark.parametrize("lines", [{}, {"head": 1}, {"tail": 1}])
def test_a_huge_line_costs_no_more_than_the_budget(files, root, at, lines):
    with (root / "file").open("wb") as file:
        file.write(b"x" * 200_000)
        file.seek(600_000_000)
        file.write(b"x" * 200_000)
    found = read_text(files, at("file"), 100_000, **lines)
    assert (len(found.text), found.truncated) == (100_000, True)


@given(st.lists(st.text("aé😀\n", max_size=9)).map("".join), st.integers(4, 40), st.integers(1, 6))
def test_parts_agree_with_the_whole(text, budget, count):
    data = text.encode()
    lines = text.splitlines(keepends=True)
    head = _from_start(data[: budget + 1], len(data), "f", count, budget)
    wanted = "".join(lines[:count])
    assert wanted.startswith(head.text)
    assert head.truncated == (head.text != wanted) == (len(wanted.encode()) > budget)
    with os.fdopen(os.memfd_create("x"), "w+b", buffering=0) as file:
        file.write(data)
        tail = _tail(Handle(file.fileno(), os.fstat(file.fileno())), "f", count, budget)
    wanted = "".join(lines[-count:])
    assert wanted.endswith(tail.text)
    assert tail.truncated == (tail.text != wanted) == (len(wanted.encode()) > budget)


def test_files_without_a_size_are_read(tmp_path):
    from pathlib import Path

    from servers.filesystem.access.beneath import Beneath
    from servers.filesystem.access.roots import Roots

    files = Beneath(Roots([Path("/proc/self")]))
    assert "Pid" in read_text(files, files.roots.place("status"), BIG).text
    files.close()


def test_bytes_and_their_type(files, root, at):
    (root / "a.png").write_bytes(b"\x89PNG")
    found = read_bytes(files, at("a.png"), 4)
    assert (found.data, found.mime) == (b"\x89PNG", "image/png")


def test_too_many_bytes(files, root, at):
    (root / "a.png").write_bytes(b"12345")
    with pytest.raises(FilesError, match=r"has 5 bytes; the limit is 4") as caught:
        read_bytes(files, at("a.png"), 4)
    assert caught.value.code == "too_large"


@pytest.mark.parametrize(
    ("name", "mime"), [("a.webp", "image/webp"), ("a", "application/octet-stream"), ("A.JPG", "image/jpeg")]
)
def test_types_by_name(name, mime):
    assert mime_of(name) == mime

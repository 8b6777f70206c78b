"""The files of a running server: read at once or in a thread, with the same outcome."""

import threading
from contextlib import asynccontextmanager, nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.filesystem.errors import FilesError
from servers.filesystem.files import open_files
from servers.filesystem.read import binary, pages
from servers.filesystem.read.binary import bytes_of, read_bytes
from servers.filesystem.read.pages import read_text, text_in
from servers.filesystem.read.parts import WHOLE, Part
from shared.kit.rooted.small_reads import SmallFiles


@pytest.fixture
def threads(monkeypatch):
    """What is done in threads."""
    seen = []
    for module, name in ((pages, "read_text"), (pages, "text_in"), (binary, "read_bytes")):
        original = getattr(module, name)

        def noted(*arguments, _original=original, name=name):
            if threading.current_thread() is not threading.main_thread():
                seen.append(name)
            return _original(*arguments)

        monkeypatch.setattr(module, name, noted)
    return seen


def at_once(*, brief):
    """There is nobody to wait for."""
    return nullcontext()


@pytest.mark.parametrize(
    ("size", "part"),
    [(1_000, WHOLE), (1_000, Part(offset=2)), (70_000, WHOLE), (70_000, Part(tail=1)), (70_000, Part(offset=2))],
)
async def test_a_large_file_is_read_in_turn_and_a_far_line_found_behind_other_long_work(root, size, part):
    (root / "a.txt").write_text("x\n" * (size // 2))
    asked = []

    @asynccontextmanager
    async def turn(*, brief):
        asked.append(brief)
        yield

    async with open_files([root], False, print) as files:
        place = files.place("a.txt")
        is_local = files.small.read(place) is not None
        await files.read_text(place, 1_000_000, turn, part)
        await files.read_bytes(place, 1_000_000, turn)
    assert asked == ([] if is_local else [part.offset is None, True])
    assert asked or size < 70_000


async def test_a_small_local_file_needs_no_thread(root, threads):
    (root / "a.txt").write_text("one\ntwo\n")
    async with open_files([root], False, print) as files:
        place = files.place("a.txt")
        is_local = files.small.read(place) is not None
        assert (await files.read_text(place, 1_000, at_once, Part(head=1))).text == "one\n"
        assert (await files.read_bytes(place, 1_000, at_once)).mime == "text/plain"
    assert threads == ([] if is_local else ["read_text", "read_bytes"])


async def test_a_large_file_is_read_in_a_thread(root, threads):
    (root / "a.txt").write_text("x" * 70_000)
    async with open_files([root], False, print) as files:
        place = files.place("a.txt")
        assert len((await files.read_text(place, 100_000, at_once)).text) == 70_000
        assert len((await files.read_bytes(place, 100_000, at_once)).data) == 70_000
    assert threads == ["read_text", "read_bytes"]


async def test_a_small_file_whose_charset_has_to_be_found_is_looked_at_in_a_thread(root, threads):
    (root / "a.txt").write_bytes(b"caf\xe9\n")
    async with open_files([root], False, print) as files:
        found = await files.read_text(files.place("a.txt"), 1_000, at_once)
    assert (found.text, found.charset.name) == ("café\n", "cp1252")
    assert len(threads) == 1


async def test_an_error_is_the_same_either_way(root):
    (root / "a").write_bytes(b"a\0")
    async with open_files([root], False, print) as files:
        with pytest.raises(FilesError, match=r"byte 1") as caught:
            await files.read_text(files.place("a"), 1_000, at_once)
        assert caught.value.code == "not_text"
        with pytest.raises(FilesError) as caught:
            await files.read_text(files.place("none"), 1_000, at_once)
        assert caught.value.code == "not_found"
        with pytest.raises(FilesError, match=r"has 2 bytes; the limit is 1") as caught:
            await files.read_bytes(files.place("a"), 1, at_once)
        assert caught.value.code == "too_large"


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except FilesError as error:
        return str(error)


LINES = st.none() | st.integers(0, 6)


@given(
    st.lists(st.text("aé😀\n\0\ufeff", max_size=9)).map("".join),
    st.binary(max_size=2),
    st.integers(4, 40),
    LINES,
    LINES,
)
def test_what_was_read_at_once_gives_what_the_walk_gives(files, root, text, rest, budget, head, tail):
    data = text.encode() + rest
    (root / "file").write_bytes(data)
    place = files.roots.place("file")
    held = SmallFiles(files, Everywhere()).read(place)
    assert held.data == data
    part = Part(head, tail)
    assert outcome(text_in, held, place, budget, part) == outcome(read_text, files, place, budget, part)
    assert outcome(bytes_of, held, place, budget) == outcome(read_bytes, files, place, budget)


class Everywhere:
    """Mounts where everything is local."""

    def local(self, place):
        return True

"""The files of a running server, read in the event loop or in a thread with the same result."""

import asyncio
import threading
from contextlib import asynccontextmanager, nullcontext

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.common.files.small_reads import SmallFiles
from servers.filesystem import files as module
from servers.filesystem.errors import FilesError
from servers.filesystem.files import open_files
from servers.filesystem.read import binary, pages
from servers.filesystem.read.binary import bytes_of, read_bytes
from servers.filesystem.read.pages import read_small_text, read_text
from servers.filesystem.read.parts import WHOLE, Part


@pytest.fixture
def threads(monkeypatch):
    """The names of the functions that run in threads."""
    seen = []
    for owner, name in ((pages, "read_text"), (pages, "read_small_text"), (binary, "read_bytes")):
        original = getattr(owner, name)

        def recorded(*arguments, _original=original, name=name):
            if threading.current_thread() is not threading.main_thread():
                seen.append(name)
            return _original(*arguments)

        monkeypatch.setattr(owner, name, recorded)
    return seen


def immediate_turn(*, brief):
    """A turn that comes immediately."""
    return nullcontext()


@pytest.mark.parametrize(
    ("size", "part"),
    [(1_000, WHOLE), (1_000, Part(offset=2)), (70_000, WHOLE), (70_000, Part(tail=1)), (70_000, Part(offset=2))],
)
async def test_a_large_file_takes_a_brief_turn_and_a_far_line_a_long_one(root, size, part):
    (root / "a.txt").write_text("x\n" * (size // 2))
    turns = []

    @asynccontextmanager
    async def turn(*, brief):
        turns.append(brief)
        yield

    async with open_files([root], False, print) as files:
        place = files.place("a.txt")
        is_local = files.small.read(place) is not None
        await files.read_text(place, 1_000_000, turn, part)
        await files.read_bytes(place, 1_000_000, turn)
    assert turns == ([] if is_local else [part.offset is None, True])
    assert turns or size < 70_000


async def test_all_written_places_are_reported_in_steps_despite_cancellation(root, monkeypatch):
    monkeypatch.setattr(module, "STEP_PLACES", 2)
    async with open_files([root], True, print) as files:
        reported, turns = [], []
        files.journal.on_own_write = reported.append
        places = [files.place(name) for name in "abcde"]
        with anyio.CancelScope() as scope:

            def look():
                turns.append(len(reported))
                scope.cancel()
                if len(reported) < 5:
                    asyncio.get_running_loop().call_soon(look)

            asyncio.get_running_loop().call_soon(look)
            await files.report_all_changes(places)
        assert reported == places
        assert list(dict.fromkeys(turns)) == [2, 4, 5]


async def test_only_small_local_files_need_no_thread(root, threads):
    (root / "small.txt").write_text("one\ntwo\n")
    (root / "large.txt").write_text("x" * 70_000)
    (root / "odd.txt").write_bytes(b"caf\xe9\n")
    async with open_files([root], False, print) as files:
        is_local = files.small.read(files.place("small.txt")) is not None
        assert (await files.read_text(files.place("small.txt"), 1_000, immediate_turn, Part(head=1))).text == "one\n"
        assert (await files.read_bytes(files.place("small.txt"), 1_000, immediate_turn)).mime == "text/plain"
        assert threads == ([] if is_local else ["read_text", "read_bytes"])
        threads.clear()
        assert len((await files.read_text(files.place("large.txt"), 100_000, immediate_turn)).text) == 70_000
        assert len((await files.read_bytes(files.place("large.txt"), 100_000, immediate_turn)).data) == 70_000
        assert threads == ["read_text", "read_bytes"]
        threads.clear()
        # Its charset must be detected.
        text = await files.read_text(files.place("odd.txt"), 1_000, immediate_turn)
        assert (text.text, text.charset.name, len(threads)) == ("café\n", "cp1252", 1)


async def test_errors_are_the_same_with_and_without_a_thread(root):
    (root / "a").write_bytes(b"a\0")
    async with open_files([root], False, print) as files:
        for read, name, budget, code, reason in (
            (files.read_text, "a", 1_000, "not_text", "byte 1"),
            (files.read_text, "none", 1_000, "not_found", "does not exist"),
            (files.read_bytes, "a", 1, "too_large", "has 2 bytes; the limit is 1"),
        ):
            with pytest.raises(FilesError, match=reason) as caught:
                await read(files.place(name), budget, immediate_turn)
            assert caught.value.code == code


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
def test_small_reads_agree_with_reads_in_a_thread(files, root, text, rest, budget, head, tail):
    data = text.encode() + rest
    (root / "file").write_bytes(data)
    place = files.roots.place("file")
    contents = SmallFiles(files, Everywhere()).read(place)
    assert contents.data == data
    part = Part(head, tail)
    assert outcome(read_small_text, contents, place, budget, part) == outcome(read_text, files, place, budget, part)
    assert outcome(bytes_of, contents, place, budget) == outcome(read_bytes, files, place, budget)


class Everywhere:
    """Mounts that report each place as local."""

    def is_local(self, place):
        return True

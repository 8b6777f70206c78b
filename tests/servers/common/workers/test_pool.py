"""Worker processes that read pages: limits, crashes, cancellation and reuse."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from servers.common.workers.frames import lengths_of
from servers.common.workers.pool import Limits, Pool
from servers.fetch.errors import FetchError
from servers.fetch.read.reader import PAGES, Reader, open_reader
from tests.descriptors import descriptors, settled_descriptors
from tests.processes import is_there
from tests.servers.fetch.bodies import loaded

MAPS = Path("/proc/self/maps")
SMALL = loaded("one", "text/plain")
SLOW = loaded("[" + "1," * 5_000_000 + "1]", "application/json")
LARGE = loaded("[" + "[]," * 3_000_000 + "1]", "application/json")


@asynccontextmanager
async def opened(limits: Limits, size: int = 1) -> AsyncIterator[tuple[Reader, Pool]]:
    pool = Pool(PAGES, size, limits)
    try:
        yield Reader(pool), pool
    finally:
        await pool.close()


@pytest.mark.skipif(not MAPS.exists(), reason="only Linux tells which libraries a process has loaded")
async def test_a_worker_loads_the_reader_libraries_and_no_server():
    async with opened(Limits(60, 256)) as (reader, pool):
        await reader.prepare()
        loaded_libraries = Path(f"/proc/{pool.pids[0]}/maps").read_text()
    assert "/lxml/" in loaded_libraries
    assert "pydantic" not in loaded_libraries


@pytest.mark.slow
async def test_a_page_over_the_time_limit_fails_alone():
    async with opened(Limits(1, 256), size=2) as (reader, pool):
        await reader.warm()
        (pid,) = pool.pids
        pages: list[str] = []

        async def read_others() -> None:
            pages.extend([(await reader.read(SMALL, "markdown")).text for _ in range(20)])

        async with anyio.create_task_group() as group:
            group.start_soon(read_others)
            with pytest.raises(FetchError, match="reading the page takes longer than 1 s") as caught:
                await reader.read(SLOW, "markdown")
        assert caught.value.code == "unreadable"
        assert pages == ["one"] * 20
        assert len(pool.pids) == 1
        assert not is_there(pid)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory as well")
async def test_a_page_over_the_memory_limit_fails():
    async with opened(Limits(10, 64)) as (reader, _):
        with pytest.raises(FetchError, match="reading the page takes more than 64 MiB of memory") as caught:
            await reader.read(LARGE, "markdown")
        assert caught.value.code == "unreadable"
        assert (await reader.read(SMALL, "markdown")).text == "one"


@pytest.mark.slow
async def test_a_crashed_worker_fails_its_page_only():
    async with opened(Limits(10, 256)) as (reader, pool):
        await reader.read(SMALL, "markdown")
        (pid,) = pool.pids
        async with anyio.create_task_group() as group:

            async def read() -> None:
                with pytest.raises(FetchError, match="the process that read the page crashed") as caught:
                    await reader.read(SLOW, "markdown")
                assert caught.value.code == "unreadable"

            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            os.kill(pid, signal.SIGKILL)
        assert not is_there(pid)
        assert (await reader.read(SMALL, "markdown")).text == "one"


async def test_a_worker_that_died_while_idle_is_replaced():
    async with opened(Limits(10, 256)) as (reader, pool):
        await reader.read(SMALL, "markdown")
        (pid,) = pool.pids
        os.kill(pid, signal.SIGKILL)
        await pool._workers[0]._process.wait()  # nothing else shows that it is dead
        assert (await reader.read(SMALL, "markdown")).text == "one"


@pytest.mark.slow
async def test_a_cancelled_read_ends_its_worker():
    async with opened(Limits(10, 256)) as (reader, pool):
        await reader.read(SMALL, "markdown")
        (pid,) = pool.pids
        async with anyio.create_task_group() as group:
            group.start_soon(reader.read, SLOW, "markdown")
            await anyio.wait_all_tasks_blocked()
            assert is_there(pid)
            group.cancel_scope.cancel()
        assert not is_there(pid)
        assert pool.pids == []
        assert (await reader.read(SMALL, "markdown")).text == "one"


@pytest.mark.slow
async def test_a_read_cancelled_in_the_queue_ends_no_worker():
    async with opened(Limits(10, 256)) as (reader, pool):
        await reader.read(SMALL, "markdown")
        before = pool.pids
        async with anyio.create_task_group() as group:
            group.start_soon(reader.read, loaded("x" * 1_000_000, "text/plain"), "markdown")
            with anyio.CancelScope() as waiting:
                waiting.cancel()
                await reader.read(SMALL, "markdown")
        assert waiting.cancelled_caught
        assert pool.pids == before


@pytest.mark.slow
async def test_pages_are_read_in_order_of_arrival():
    read: list[int] = []
    async with opened(Limits(10, 256)) as (reader, _), anyio.create_task_group() as group:

        async def read_page(number: int) -> None:
            await reader.read(SMALL, "markdown")
            read.append(number)

        for number in range(20):
            group.start_soon(read_page, number)
    assert read == list(range(20))


async def test_sequential_pages_share_one_worker_despite_a_damaged_page():
    pids = set[int]()
    async with opened(Limits(10, 256), size=3) as (reader, pool):
        for _ in range(3):
            await reader.read(SMALL, "markdown")
            pids |= {*pool.pids}
            with pytest.raises(FetchError, match="the PDF is damaged"):
                await reader.read(loaded(b"%PDF-1.7\n", "application/pdf"), "markdown")
    assert len(pids) == 1


@pytest.mark.slow
async def test_a_worker_is_replaced_after_its_number_of_pages():
    pids = []
    async with opened(Limits(10, 256, requests=2)) as (reader, pool):
        await reader.warm()
        for _ in range(5):
            pids += pool.pids
            await reader.read(SMALL, "markdown")
    assert len(pids) == 3
    assert len(set(pids)) == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="open files are counted in /proc")
async def test_a_closed_reader_leaves_no_process_or_descriptor():
    before = len(settled_descriptors())
    async with open_reader(workers=2, seconds=10, mebibytes=256) as reader:
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(reader.read, SMALL, "markdown")
        pids = reader._pool.pids  # an open reader gives no other access to its processes
        assert len(pids) == 2
    assert not any(map(is_there, pids))
    assert len(descriptors()) <= before + 2  # the event loop keeps two to watch processes


@pytest.mark.slow
async def test_a_worker_does_not_inherit_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SITE_TOKEN", "secret")
    async with opened(Limits(10, 256)) as (reader, pool):
        await reader.read(SMALL, "markdown")
        (pid,) = pool.pids
        if sys.platform == "linux":
            assert b"SITE_TOKEN" not in Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.slow
async def test_a_worker_starts_in_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "json.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    async with opened(Limits(10, 256)) as (reader, _):
        assert (await reader.read(SMALL, "markdown")).text == "one"


@pytest.mark.slow
async def test_a_read_cancelled_within_its_answer_ends_its_worker(monkeypatch: pytest.MonkeyPatch):
    async with opened(Limits(10, 256)) as (reader, pool):
        await reader.read(SMALL, "markdown")
        (pid,) = pool.pids
        with anyio.CancelScope() as reading:

            def lengths(start: bytes) -> tuple[int, int]:
                os.kill(pid, signal.SIGSTOP)  # so that the rest of the answer does not arrive first
                reading.cancel()
                return lengths_of(start)

            # Nothing else shows when an answer has begun.
            monkeypatch.setattr("servers.common.workers.pool.lengths_of", lengths)
            await reader.read(loaded("x" * 5_000_000, "text/plain"), "markdown")
        monkeypatch.undo()
        assert reading.cancelled_caught
        assert not is_there(pid)
        assert (await reader.read(SMALL, "markdown")).text == "one"

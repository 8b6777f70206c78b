"""Changes of folders, detected by a watch: real files, and a report of each burst."""

import os
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from servers.common.notices import Notices, open_watch
from servers.prompts.library import watch
from servers.prompts.library.libraries import Libraries
from servers.prompts.library.snapshot import ScanChanges
from servers.prompts.library.watch import Watch
from servers.prompts.server import app as prompts
from shared.contracts import Stores
from tests.servers.prompts.folders import SIMPLE, front, put, texts, write
from tests.servers.replicas import expect_updates, subscribe_to, two


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    """Returns the folder of a library."""
    folder = tmp_path / "lib"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def no_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns periodic sweeps off, so that only notices or polling detect changes."""
    monkeypatch.setattr(watch, "_SWEEP_SECONDS", 3_600.0)


class Reports:
    """The reports of a watch."""

    def __init__(self) -> None:
        self.send, self.receive = anyio.create_memory_object_stream[ScanChanges](100)

    async def next(self) -> ScanChanges:
        """Returns the next report."""
        with anyio.fail_after(30):
            return await self.receive.receive()


class Opener:
    """Opens watches and counts them."""

    def __init__(self, *refusals: Exception) -> None:
        self.refusals = list(refusals)
        self.opened = 0

    def __call__(self, directories: list[str]) -> Any:
        if self.refusals:
            raise self.refusals.pop(0)
        watch = open_watch(directories)
        self.opened += 1
        return watch

    async def until(self, count: int) -> None:
        """Waits until that many watches were opened."""
        with anyio.fail_after(30):
            while self.opened < count:
                await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def watching(libraries: Libraries, opener: Opener | None = None) -> AsyncIterator[Reports]:
    libraries.scan()
    watcher, reports = Watch(libraries, Notices(opener or Opener())), Reports()
    watcher.arm()
    async with reports.send, reports.receive, anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run, reports.send.send_nowait)
        yield reports
        tasks.cancel_scope.cancel()


def news(*names: str, others: bool = False) -> ScanChanges:
    return ScanChanges(frozenset(names), others)


async def test_new_changed_and_removed_files_are_reported_once_each(lib: Path) -> None:
    libraries = Libraries([lib])
    async with watching(libraries) as reports:
        put(lib, {"a.md": SIMPLE})
        assert await reports.next() == news("a")
        put(lib, {"a.md": front(body="New.")})
        assert await reports.next() == news("a")
        assert texts(libraries.library("a"), "a") == ["New."]
        (lib / "a.md").unlink()
        assert await reports.next() == news("a")
    assert libraries.names == []


async def test_changes_before_the_first_watch_are_reported(lib: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_POLL_SECONDS", 0.01)
    libraries, reports = Libraries([lib]), Reports()
    libraries.scan()
    put(lib, {"a.md": SIMPLE})
    watcher = Watch(libraries)
    watcher.arm()
    async with reports.send, reports.receive, anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run, reports.send.send_nowait)
        assert await reports.next() == news("a")
        tasks.cancel_scope.cancel()


async def test_many_simultaneous_files_are_one_change(lib: Path) -> None:
    libraries = Libraries([lib])
    write(lib.parent, {f"more/{number}.md": SIMPLE for number in range(50)})
    async with watching(libraries) as reports:
        (lib.parent / "more").rename(lib / "more")
        assert len((await reports.next()).names) == 50


class Burst(Notices):
    """Notices of three files, one after the other."""

    def __init__(self, lib: Path) -> None:
        super().__init__()
        self.lib = lib
        self.left = ["a.md", "b.md", "c.md"]

    def arm(self, directories: Iterable[str]) -> bool:
        return False

    def wait(self, stop: threading.Event, seconds: float) -> set[str] | None:
        if not self.left:
            stop.wait(seconds)
            return set()
        name = self.left.pop()
        put(self.lib, {name: SIMPLE})
        return {str(self.lib / name)}


async def test_a_scan_waits_for_the_end_of_a_burst(lib: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_MAX_WAIT_SECONDS", 60.0)
    reports = Reports()
    async with reports.send, reports.receive, anyio.create_task_group() as tasks:
        tasks.start_soon(Watch(Libraries([lib]), Burst(lib)).run, reports.send.send_nowait)
        assert await reports.next() == news("a", "b", "c")
        tasks.cancel_scope.cancel()


class Silent(Notices):
    """No notices."""

    def arm(self, directories: Iterable[str]) -> bool:
        return False

    def wait(self, stop: threading.Event, seconds: float) -> set[str] | None:
        stop.wait(seconds)
        return set()


async def test_a_change_announced_during_a_scan_causes_another(lib: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_POLL_SECONDS", 3_600)
    libraries, reports = Libraries([lib]), Reports()
    watcher, find, scans = Watch(libraries, Silent()), libraries.scan, 0

    def scan() -> ScanChanges | None:
        nonlocal scans
        scans += 1
        if scans == 1:
            changed = find()
            put(lib, {"a.md": SIMPLE})
            watcher.scan_soon()
            return changed
        return find()

    monkeypatch.setattr(libraries, "scan", scan)
    async with reports.send, reports.receive, anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run, reports.send.send_nowait)
        watcher.scan_soon()
        assert await reports.next() == news("a")
        tasks.cancel_scope.cancel()


async def test_a_new_directory_is_watched(lib: Path) -> None:
    opener = Opener()
    async with watching(Libraries([lib]), opener) as reports:
        (lib / "log").mkdir()
        await opener.until(2)
        put(lib, {"log/a.md": SIMPLE})
        assert await reports.next() == news("log-a")
        for text in (SIMPLE, front(body="New.")):
            put(lib, {"git/hooks/a.md": text})
            assert await reports.next() == news("git-hooks-a")


async def test_a_replaced_folder_is_reported_and_watched(tmp_path: Path, lib: Path) -> None:
    write(tmp_path, {"lib/a.md": SIMPLE, "next/a.md": front(body="Other."), "next/b.md": SIMPLE})
    opener = Opener()
    async with watching(Libraries([lib]), opener) as reports:
        lib.rename(tmp_path / "old")
        assert await reports.next() == news()
        await opener.until(2)
        (tmp_path / "next").rename(lib)
        assert await reports.next() == news("a", "b")
        put(lib, {"c.md": SIMPLE})
        assert (await reports.next()).names == {"c"}


def test_changes_beside_the_folder_are_irrelevant(tmp_path: Path, lib: Path) -> None:
    libraries = Libraries([lib])
    with closing(Notices()) as notices:
        watcher = Watch(libraries, notices)
        watcher.arm()
        assert watcher.is_relevant(str(lib))
        assert watcher.is_relevant(str(lib / "a.md"))
        assert not watcher.is_relevant(str(tmp_path / "other"))


async def test_a_removed_broken_file_changes_no_prompt(lib: Path) -> None:
    async with watching(Libraries([lib])) as reports:
        put(lib, {"a.md": ""})
        assert await reports.next() == news()
        (lib / "a.md").unlink()
        assert await reports.next() == news()


@pytest.mark.slow
async def test_a_folder_is_polled_when_watching_fails(lib: Path, caplog: pytest.LogCaptureFixture) -> None:
    opener = Opener(OSError(os.strerror(28)))
    async with watching(Libraries([lib]), opener) as reports:
        put(lib, {"a.md": SIMPLE})
        assert await reports.next() == news("a")
    assert opener.opened == 0
    assert caplog.text.count("no change notifications") == 1


@pytest.mark.slow
async def test_a_file_name_outside_utf8_loses_no_change(lib: Path) -> None:
    async with watching(Libraries([lib])) as reports:
        (Path(os.fsdecode(os.fsencode(lib) + b"/\xff.txt"))).write_text("x")
        put(lib, {"a.md": SIMPLE})
        found: set[str] = set()
        while "a" not in found:
            found |= (await reports.next()).names
        put(lib, {"b.md": SIMPLE})
        assert "b" in (await reports.next()).names


# Two replicas


async def test_prompts_saved_by_another_replica_are_reported(stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "known.md").write_text(SIMPLE)
    async with two(prompts, stores, "--allow-write", tmp_path) as (here, there):
        await subscribe_to(here, "prompt://", "prompt://known")
        await there.text("save_prompt", name="new", text=SIMPLE)
        await here.other("notifications/prompts/list_changed")
        await expect_updates(here, "prompt://")
        # After the notification, the prompt is available.
        assert "result" in await here.request("prompts/get", {"name": "new"})
        await there.text("delete_prompt", name="known")
        await expect_updates(here, "prompt://", "prompt://known")

import os
import time
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio import to_thread

from servers.filesystem.watching.watcher import Watcher

pytestmark = pytest.mark.slow


class Seen:
    """The keys told, to be awaited."""

    def __init__(self):
        self.send, self.receive = anyio.create_memory_object_stream[str](1_000)

    async def __call__(self, key="listing"):
        await self.send.send(key)

    async def next(self):
        with anyio.fail_after(4):
            return await self.receive.receive()

    def drain(self):
        count = 0
        while True:
            try:
                self.receive.receive_nowait()
            except anyio.WouldBlock:
                return count
            count += 1


@pytest.fixture
def seen():
    told = Seen()
    yield told
    told.send.close()
    told.receive.close()


@pytest.fixture
def watching(files, seen):
    @asynccontextmanager
    async def run():
        watcher = Watcher(files, seen)
        async with anyio.create_task_group() as group:
            group.start_soon(watcher.run)
            yield watcher
            group.cancel_scope.cancel()

    return run


async def test_a_write_is_told(watching, seen, root, at):
    (root / "file").write_text("a")
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        (root / "file").write_text("b")
        assert await seen.next() == "key"


async def test_three_renames_over_the_file_are_three_changes(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        for text in "abc":
            (root / "new").write_text(text)
            (root / "new").replace(root / "file")
            assert await seen.next() == "key"


async def test_delete_recreate_and_append(watching, seen, root, at):
    (root / "file").write_text("a")
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        (root / "file").unlink()
        await seen.next()
        (root / "file").write_text("a")
        await seen.next()
        with (root / "file").open("a") as file:
            file.write("b")
        await seen.next()


async def test_a_file_in_directories_that_do_not_exist_yet(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("key", at("a/b/file"))
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "b" / "file").write_text("x")
        await seen.next()


async def test_a_directory_on_the_way_is_exchanged(watching, seen, root, at):
    for name in ("one", "two"):
        (root / name).mkdir()
        (root / name / "file").write_text(name)
    async with watching() as watcher:
        await watcher.watch("key", at("one/file"))
        (root / "one").rename(root / "old")
        (root / "two").rename(root / "one")
        await seen.next()
        seen.drain()
        (root / "one" / "file").write_text("more")
        await seen.next()


async def test_links_retargeted_and_targets_changed(watching, seen, root, at):
    (root / "a").write_text("a")
    (root / "dir").mkdir()
    (root / "dir" / "b").write_text("b")
    (root / "link").symlink_to("a")
    async with watching() as watcher:
        await watcher.watch("key", at("link"))
        (root / "new").symlink_to("dir/b")
        (root / "new").replace(root / "link")
        await seen.next()
        (root / "dir" / "b").write_text("c")
        await seen.next()


async def test_a_link_that_comes_to_point_outside_is_told_once(watching, seen, root, outside, at):
    (root / "file").write_text("a")
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        await watcher.watch("other", at("other"))
        (root / "file").unlink()
        (root / "file").symlink_to(outside / "secret")
        await seen.next()
        (outside / "secret").write_text("changed")
        (root / "other").touch()
        while await seen.next() != "other":
            pass
        assert seen.drain() == 0


async def test_a_chmod_and_a_touch_are_not_told(watching, seen, root, at):
    (root / "file").write_text("a")
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        await watcher.watch("other", at("other"))
        (root / "file").chmod(0o600)
        os.utime(root / "file")
        (root / "other").touch()
        assert await seen.next() == "other"


async def test_endless_writing_is_told_soon_and_at_a_bounded_rate(watching, seen, root, at):
    def write():
        for i in range(50):
            (root / "file").write_text(str(i))
            time.sleep(0.02)

    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        async with anyio.create_task_group() as group:
            group.start_soon(to_thread.run_sync, write)
            with anyio.fail_after(0.8):
                await seen.receive.receive()
        assert 3 <= seen.drain() + 1 <= 12


async def test_the_last_change_is_told(watching, seen, root, at):
    texts = []

    async def changed(key):
        texts.append((root / "file").read_text())
        await seen(key)

    async with watching() as watcher:
        watcher._changed = changed
        await watcher.watch("key", at("file"))
        for i in range(100):
            (root / "file").write_text(str(i))
        while not texts or texts[-1] != "99":
            await seen.next()


async def test_changes_while_the_set_changes_are_not_lost(watching, seen, root, at):
    async with watching() as watcher:
        for i in range(30):
            await watcher.watch(str(i), at(f"{i}/file"))
            (root / str(i)).mkdir()
            (root / str(i) / "file").write_text("x")
        missing = {str(i) for i in range(30)}
        while missing:
            missing.discard(await seen.next())


async def test_unwatching_one_leaves_the_other(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("one", at("file"))
        await watcher.watch("two", at("file"))
        watcher.unwatch("one")
        (root / "file").touch()
        assert await seen.next() == "two"
        assert seen.drain() == 0


async def test_a_notice_that_comes_with_a_change_of_the_set_is_not_lost(watching, seen, root, at):
    """The backstop would find the change too, but later than `next` waits."""
    async with watching() as watcher:
        await watcher.watch("one", at("one"))
        await watcher.watch("two", at("two"))
        for text in "abc":
            (root / "two").write_text(text)
            assert await seen.next() == "two"
            (root / "two").write_text(text * 2)
            await watcher.watch("one", at("one"))
            assert await seen.next() == "two"


async def test_a_new_entry_changes_the_listing(watching, seen, root):
    async with watching() as watcher:
        await watcher.watch_listing(seen)
        (root / "file").touch()
        assert await seen.next() == "listing"
        (root / "file").write_text("x")
        (root / "file").unlink()
        assert await seen.next() == "listing"
        assert seen.drain() == 0


async def test_the_last_unwatch_ends_the_os_watch(watching, at):
    async with watching() as watcher:
        await until(lambda: inotify() == 0)
        await watcher.watch("key", at("file"))
        await until(lambda: inotify() == 1)
        watcher.unwatch("key")
        await until(lambda: inotify() == 0)


async def test_watching_again_after_the_last_unwatch(watching, seen, root, at):
    async with watching() as watcher:
        for text in "ab":
            await watcher.watch("key", at("file"))
            (root / "file").write_text(text)
            assert await seen.next() == "key"
            watcher.unwatch("key")


async def test_cancelling_ends_the_wait_quickly(watching, at):
    with anyio.fail_after(1):
        async with watching() as watcher:
            await watcher.watch("key", at("file"))
            await anyio.wait_all_tasks_blocked()
    await until(lambda: inotify() == 0)


async def until(condition):
    with anyio.fail_after(3):
        while not condition():
            await anyio.lowlevel.checkpoint()


def inotify():
    """How many inotify descriptors this process has."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue
    return links.count("anon_inode:inotify")

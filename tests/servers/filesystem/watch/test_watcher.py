"""The watcher: its updates about files, and their cost."""

import itertools
import os
import shutil
import threading
import time
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest
from anyio import to_thread

from servers.common.notices import Notices, open_watch
from servers.filesystem.errors import FilesError
from servers.filesystem.watch.fingerprint import WatchedPlace
from servers.filesystem.watch.pacing import Pace, check_target
from servers.filesystem.watch.subscriptions import GlobTrees
from servers.filesystem.watch.tree import EntryQuota
from servers.filesystem.watch.watcher import Watcher
from tests.descriptors import descriptors, settled_descriptors
from tests.servers.filesystem.editing_files import append_as_another


def with_room(watcher, entries):
    """Limit the quota of the watcher: filling the real quota would take minutes."""
    watcher._quota = EntryQuota(entries)
    return watcher


def room_left(watcher):
    return watcher._quota._left


class Seen:
    """The updated keys, to be awaited."""

    def __init__(self):
        self.send, self.receive = anyio.create_memory_object_stream[str](1_000)

    async def __call__(self, key="listing"):
        await self.send.send(key)

    async def next(self):
        with anyio.fail_after(30):
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
    updates = Seen()
    yield updates
    updates.send.close()
    updates.receive.close()


LOOK = WatchedPlace.check
SWEEP = "servers.filesystem.watch.watcher._SWEEP_SECONDS"


@pytest.fixture
def watching(files, seen, monkeypatch):
    """A watcher whose sweep does not run during a test."""
    monkeypatch.setattr(SWEEP, 3_600.0)

    @asynccontextmanager
    async def run(**options):
        watcher = Watcher(files, seen, **options)
        async with anyio.create_task_group() as group:
            group.start_soon(watcher.run)
            yield watcher
            group.cancel_scope.cancel()

    return run


async def test_three_renames_over_a_file_send_three_updates(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        for text in "abc":
            (root / "new").write_text(text)
            (root / "new").replace(root / "file")
            assert await seen.next() == "key"


async def test_deleting_recreating_appending_and_truncating_send_updates(watching, seen, root, at):
    file = root / "file"
    file.write_text("a")
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        for change in (
            file.unlink,
            lambda: file.write_text("a"),
            lambda: append_as_another(file),
            lambda: os.truncate(file, 1),
        ):
            change()
            assert await seen.next() == "key"


async def test_a_file_in_missing_directories_is_watched(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("key", at("a/b/file"))
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "b" / "file").write_text("x")
        await seen.next()


async def test_exchanging_a_parent_directory_sends_an_update(watching, seen, root, at):
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


async def test_retargeted_links_and_changed_targets_send_updates(watching, seen, root, at):
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


async def test_a_link_retargeted_outside_sends_one_update(watching, seen, root, outside, at):
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


async def test_chmod_and_touch_send_no_update(watching, seen, root, at):
    (root / "file").write_text("a")
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        await watcher.watch("other", at("other"))
        (root / "file").chmod(0o600)
        os.utime(root / "file")
        (root / "other").touch()
        assert await seen.next() == "other"


@pytest.mark.slow
async def test_continuous_writing_sends_updates_before_it_ends(watching, seen, root, at, monkeypatch):
    """No moment counts as quiet here, so the speed of writing does not matter. `test_pacing` tests the rate."""
    monkeypatch.setattr("servers.filesystem.watch.watcher.Pace", partial(Pace, quiet=3_600.0, leading=False))
    enough = threading.Event()

    def write():
        for number in itertools.count():
            (root / "file").write_text(str(number))
            if enough.wait(0.01):
                return

    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        async with anyio.create_task_group() as group:
            group.start_soon(to_thread.run_sync, write)
            try:
                for _ in range(4):
                    assert await seen.next() == "key"
            finally:
                enough.set()


async def test_changes_while_watches_are_added_are_not_lost(watching, seen, root, at):
    async with watching() as watcher:
        for i in range(30):
            await watcher.watch(str(i), at(f"{i}/file"))
            (root / str(i)).mkdir()
            (root / str(i) / "file").write_text("x")
        missing = {str(i) for i in range(30)}
        while missing:
            missing.discard(await seen.next())


async def test_unwatching_a_key_keeps_other_keys_of_the_file(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("one", at("file"))
        await watcher.watch("two", at("file"))
        watcher.unwatch("one")
        (root / "file").touch()
        assert await seen.next() == "two"
        assert seen.drain() == 0


@pytest.mark.slow
async def test_watching_and_writing_a_file_cause_no_check_of_others(watching, seen, root, at, monkeypatch):
    looked = []
    for name in ("first", "second"):
        (root / name).write_text("x")
    monkeypatch.setattr(
        WatchedPlace, "check", lambda spot, noticed: looked.append(spot.place.parts) or LOOK(spot, noticed)
    )
    async with watching() as watcher:
        await watcher.watch("first", at("first"))
        with anyio.fail_after(30):
            while watcher._notices.has_no_watch or watcher._is_stale:
                await anyio.sleep(0.01)
        await anyio.sleep(0.1)
        looked.clear()
        await watcher.watch("second", at("second"))
        await anyio.sleep(0.1)
        assert looked == [("second",)]
        (root / "second").write_text("y")
        assert await seen.next() == "second"
        watcher.unwatch("first")
        await anyio.sleep(0.1)
        assert ("first",) not in looked


async def test_a_notice_during_a_new_watch_is_not_lost(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("one", at("one"))
        await watcher.watch("two", at("two"))
        for text in "abc":
            (root / "two").write_text(text)
            assert await seen.next() == "two"
            (root / "two").write_text(text * 2)
            await watcher.watch("one", at("one"))
            assert await seen.next() == "two"


async def test_a_change_before_its_directory_is_armed_is_not_lost(watching, seen, root, at, monkeypatch):
    (root / "below").mkdir()
    async with watching() as watcher:
        await watcher.watch("first", at("first"))
        (root / "first").write_text("a")  # sends an update once its directory is armed
        assert await seen.next() == "first"
        arm = watcher._notices.arm

        def change_and_arm(directories):
            directories = list(directories)
            # The directory of the first file may be armed again before the key is watched.
            if str(root / "below") in directories:
                (root / "below" / "file").write_text("changed")
            return arm(directories)

        monkeypatch.setattr(watcher._notices, "arm", change_and_arm)
        await watcher.watch("key", at("below/file"))
        assert await seen.next() == "key"


async def test_new_and_removed_entries_update_the_listing(watching, seen, root):
    async with watching() as watcher:
        await watcher.watch_listing("listing", seen)
        (root / "file").touch()
        assert await seen.next() == "listing"
        (root / "file").write_text("x")
        (root / "file").unlink()
        assert await seen.next() == "listing"
        assert seen.drain() == 0


@pytest.mark.slow
async def test_an_undecodable_name_is_watched_like_others(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        await watcher.watch("odd", at("\udcff"))
        await until(lambda: inotify() == 1)
        open(os.fsencode(root) + b"/\xff", "w").close()
        assert await seen.next() == "odd"
        (root / "file").write_text("a")
        assert await seen.next() == "key"
        await until(lambda: inotify() == 1)
        (root / "file").write_text("b")
        assert await seen.next() == "key"


def refusing(_directories):
    raise OSError("inotify watch limit reached")


@pytest.mark.slow
async def test_files_are_polled_without_notices(watching, seen, root, at):
    async with watching(notices=Notices(refusing)) as watcher:
        await watcher.watch("key", at("file"))
        await until(lambda: watcher.is_polling)
        (root / "file").write_text("a")
        assert await seen.next() == "key"
        assert watcher.health == {"watched": 1, "polled": 1, "degraded": True}
        (root / "file").write_text("b")
        assert await seen.next() == "key"


async def test_on_polling_is_called_when_polling_begins_and_ends(watching, at):
    refused = [True]

    def opener(directories):
        return refusing(directories) if refused else open_watch(directories)

    notices = Notices(opener)
    async with watching(notices=notices) as watcher:
        polled = []
        watcher.on_polling = polled.append
        await watcher.watch("key", at("file"))
        await until(lambda: polled == [True])
        refused.clear()
        watcher.unwatch("key")
        await until(lambda: not notices._watched)  # or the watcher would not try again for half a minute
        await watcher.watch("key", at("file"))
        await until(lambda: polled[-1] is False)


async def test_only_remote_files_are_polled(watching, seen, root, at, caplog):
    caplog.set_level("INFO")
    for name in ("far", "near"):
        (root / name).mkdir()
    async with watching(local=lambda place: place.parts[0] == "near") as watcher:
        await watcher.watch("far", at("far/file"))
        (root / "far" / "file").write_text("a")
        assert await seen.next() == "far"
        await until(lambda: inotify() == 0)
        await watcher.watch("near", at("near/file"))
        (root / "near" / "file").write_text("a")
        assert await seen.next() == "near"
        assert watcher.health == {"watched": 2, "polled": 1, "degraded": False}
    assert caplog.text.count("polled every second") == 1


async def test_a_remote_file_system_that_does_not_answer_delays_no_other_file(watching, seen, root, at, monkeypatch):
    looking, answer = threading.Event(), threading.Event()
    original = WatchedPlace.check

    def check(spot, noticed):
        if spot.last is not None and "far" in spot.place.parts:
            looking.set()
            assert answer.wait(30)
        return original(spot, noticed)

    # A test can not have a file system that does not answer.
    monkeypatch.setattr(WatchedPlace, "check", check)
    async with watching(local=lambda place: "far" not in place.parts) as watcher:
        await watcher.watch("far", at("far"))
        await watcher.watch("near", at("near"))
        await until(looking.is_set)
        (root / "near").touch()
        assert await seen.next() == "near"
        watcher.unwatch("far")
        answer.set()


async def test_watching_a_key_again_hides_no_earlier_change(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        (root / "file").touch()
        await watcher.watch("key", at("file"))
        assert await seen.next() == "key"


async def test_one_unwatch_ends_two_simultaneous_watches_of_a_glob(watching, seen, root, files, at):
    (root / "file").touch()
    async with watching() as watcher:
        globs = GlobTrees(watcher, seen)
        with_room(watcher, 2)
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(globs.watch, "key", at("."), "./*", files)
        globs.unwatch("key")
        await until(lambda: room_left(watcher) == 2)


class Mute:
    """A watch that gives no notices, as if its queue had been full."""

    def watch(self, _debounce, _step, timeout, stop):
        return "stop" if stop.wait(timeout / 1_000) else "timeout"

    def close(self):
        pass


async def test_the_sweep_finds_changes_without_a_notice(watching, seen, root, at, monkeypatch):
    monkeypatch.setattr(SWEEP, 0.01)
    async with watching(notices=Notices(lambda _: Mute())) as watcher:
        await watcher.watch("key", at("file"))
        for text in "ab":
            (root / "file").write_text(text)
            assert await seen.next() == "key"
        assert watcher.health == {"watched": 1, "polled": 0, "degraded": False}


async def test_a_notice_lost_among_others_is_recovered(watching, seen, root, at):
    class Losing:
        """A watch that loses the notices of one file, as watchfiles sometimes does."""

        def __init__(self, directories):
            self._watch = open_watch(directories)
            self.close = self._watch.close

        def watch(self, *arguments):
            changes = self._watch.watch(*arguments)
            return (
                changes
                if isinstance(changes, str)
                else {change for change in changes if not change[1].endswith("lost")}
            )

    async with watching(notices=Notices(Losing)) as watcher:
        for name in ("other", "lost"):
            await watcher.watch(name, at(name))
        (root / "other").touch()
        assert await seen.next() == "other"
        (root / "lost").touch()
        (root / "other").write_text("x")
        assert {await seen.next(), await seen.next()} == {"lost", "other"}


async def test_continuous_notices_do_not_repeat_full_checks(watching, root, at, monkeypatch):
    looks = []

    def look_slowly(target, noticed):
        if any(path.endswith("idle") for path in target.trail):
            looks.append(target)
            time.sleep(0.1)
        return check_target(target, noticed)

    async with watching() as watcher:
        await watcher.watch("idle", at("idle"))
        await watcher.watch("busy", at("busy"))
        await anyio.sleep(0.5)
        monkeypatch.setattr("servers.filesystem.watch.watcher.check_target", look_slowly)
        for number in range(4):
            (root / "busy").write_text(str(number))
            await anyio.sleep(0.3)
    # A check of a tenth of a second is not repeated for two seconds.
    assert len(looks) == 1


async def test_watches_over_the_limit_are_refused_and_others_continue(watching, seen, root, at, monkeypatch):
    monkeypatch.setattr("servers.filesystem.watch.watcher.MAX_WATCHED", 2)
    async with watching() as watcher:
        for key in ("one", "two", "two"):
            await watcher.watch(key, at(key))
        with pytest.raises(FilesError, match="2 entries are watched, which is the limit"):
            await watcher.watch("three", at("three"))
        (root / "two").touch()
        assert await seen.next() == "two"


async def test_simultaneous_watches_over_the_limit_are_refused_and_release_their_quota(
    watching, seen, root, at, monkeypatch
):
    monkeypatch.setattr("servers.filesystem.watch.watcher.MAX_WATCHED", 2)
    (root / "file").touch()
    refused = []

    async def begin(number):
        try:
            await watcher.watch_tree(number, at("."), ["*"], seen)
        except FilesError as error:
            refused.append(error.code)

    async with watching() as watcher:
        with_room(watcher, 100)
        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(begin, number)
        assert (refused, watcher.health["watched"]) == (["too_many"] * 3, 2)
        assert room_left(watcher) == 100 - 2


async def test_two_simultaneous_watches_of_a_key_use_the_quota_once(watching, seen, root, at):
    (root / "file").touch()
    async with watching() as watcher:
        with_room(watcher, 100)
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(watcher.watch_tree, "key", at("."), ["*"], seen)
        assert room_left(watcher) == 100 - 1


async def test_a_write_affects_the_entry_its_directory_and_its_contents(watching, at):
    keys = ["file:///a", "file:///a/b", "file:///a/b/c", "file:///a/bc", "file:///a/b/c/d"]
    async with watching() as watcher:
        for number, key in enumerate(keys):
            await watcher.watch(key, at(str(number)))
        assert watcher.affected_keys("file:///a/b") == [
            "file:///a",
            "file:///a/b",
            "file:///a/b/c",
            "file:///a/b/c/d",
        ]


@pytest.mark.slow
async def test_a_thousand_ended_watches_leave_no_descriptor(watching, at):
    before = len(settled_descriptors())
    async with watching() as watcher:
        for i in range(1_000):
            await watcher.watch(str(i), at(f"{i % 10}/file"))
            watcher.unwatch(str(i))
        await until(lambda: inotify() == 0)
        assert watcher.health["watched"] == 0
        await until(lambda: len(descriptors()) <= before)


@pytest.mark.slow
async def test_a_deleted_and_recreated_root_is_watched_again(watching, seen, root, at):
    (root / "file").write_text("a")
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        await until(lambda: inotify() == 1)
        shutil.rmtree(root)
        assert await seen.next() == "key"
        root.mkdir()
        (root / "file").write_text("b")
        with anyio.fail_after(60):
            assert await seen.receive.receive() == "key"


async def test_a_moved_root_is_still_watched(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        await until(lambda: inotify() == 1)
        root.rename(root.parent / "moved")
        (root.parent / "moved" / "file").write_text("a")
        assert await seen.next() == "key"


async def test_a_watched_directory_sends_updates_for_its_listing_only(watching, seen, root, at):
    (root / "dir").mkdir()
    async with watching() as watcher:
        await watcher.watch("key", at("dir"))
        (root / "dir" / "file").touch()
        assert await seen.next() == "key"
        (root / "dir" / "file").write_text("x")
        (root / "dir" / "sub").mkdir()
        assert await seen.next() == "key"
        assert seen.drain() == 0


async def test_a_glob_sends_updates_for_matches_at_any_depth(watching, seen, root, files, at):
    async with watching() as watcher:
        await GlobTrees(watcher, seen).watch("key", at("src"), "./**/*.py", files)
        (root / "src" / "deep" / "deeper").mkdir(parents=True)
        file = root / "src" / "deep" / "deeper" / "a.py"
        for change in (file.touch, lambda: file.write_text("x"), file.unlink):
            change()
            assert await seen.next() == "key"


async def test_a_glob_sends_no_update_for_other_files(watching, seen, root, files, at):
    async with watching() as watcher:
        await GlobTrees(watcher, seen).watch("key", at("."), "./*.py", files)
        await watcher.watch("other", at("b.txt"))
        (root / "sub").mkdir()
        for path in ("a.txt", "sub/a.py", "b.txt"):
            (root / path).touch()
        assert await seen.next() == "other"
        assert seen.drain() == 0


async def test_links_to_denied_and_outside_entries_are_not_watched(watching, seen, root, outside, files, at):
    (root / ".env").touch()
    (root / "link").symlink_to(".env")
    (root / "out").symlink_to(outside)
    async with watching() as watcher:
        with pytest.raises(FilesError, match="outside the allowed"):
            await watcher.watch("key", at("link"))
        with pytest.raises(FilesError, match="outside the allowed"):
            await GlobTrees(watcher, seen).watch("key", at("out"), "./*", files)


async def test_an_owner_can_not_use_the_quota_of_others(watching, seen, root, files, at):
    for i in range(4):
        (root / str(i)).touch()
    async with watching() as watcher:
        with_room(watcher, 12)
        globs = GlobTrees(watcher, seen)
        await globs.watch("near", at("."), "./*", files, "greedy")
        with pytest.raises(FilesError, match="too many files"):
            await globs.watch("far", at("."), "./**/*", files, "greedy")
        assert watcher.health["watched"] == 1
        await until(lambda: room_left(watcher) == 8)
        await globs.watch("far", at("."), "./**/*", files, "other")
        globs.unwatch("near")
        await until(lambda: room_left(watcher) == 8)
        await globs.watch("near", at("."), "./*", files, "greedy")


async def test_the_last_unwatch_ends_the_os_watch_and_the_next_begins_another(watching, seen, root, at):
    async with watching() as watcher:
        for text in "ab":
            await until(lambda: inotify() == 0)
            await watcher.watch("key", at("file"))
            await until(lambda: inotify() == 1)
            (root / "file").write_text(text)
            assert await seen.next() == "key"
            watcher.unwatch("key")
        await until(lambda: inotify() == 0)
        await watcher.watch("key", at("file"))
    await until(lambda: inotify() == 0)


async def until(condition):
    with anyio.fail_after(30):
        while not condition():
            await anyio.lowlevel.checkpoint()


def inotify():
    """The number of inotify descriptors of this process."""
    return descriptors().count("anon_inode:inotify")

"""The watcher: which changes to files are told, and what it costs."""

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
from tests.servers.filesystem.editing_files import theirs_added


def with_room(watcher, entries):
    """The watcher with room for so few entries: a directory of as many as it has room for would take minutes."""
    watcher._quota = EntryQuota(entries)
    return watcher


def room_left(watcher):
    return watcher._quota._left


class Seen:
    """The keys told, to be awaited."""

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
    told = Seen()
    yield told
    told.send.close()
    told.receive.close()


LOOK = WatchedPlace.check
SWEEP = "servers.filesystem.watch.watcher._SWEEP_SECONDS"


@pytest.fixture
def watching(files, seen, monkeypatch):
    """A watcher that does not come upon changes by itself before a test has given up waiting."""
    monkeypatch.setattr(SWEEP, 3_600.0)

    @asynccontextmanager
    async def run(**options):
        watcher = Watcher(files, seen, **options)
        async with anyio.create_task_group() as group:
            group.start_soon(watcher.run)
            yield watcher
            group.cancel_scope.cancel()

    return run


async def test_w2_three_renames_over_the_file_are_three_changes(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        for text in "abc":
            (root / "new").write_text(text)
            (root / "new").replace(root / "file")
            assert await seen.next() == "key"


async def test_w3_deleting_creating_again_appending_and_truncating_are_told(watching, seen, root, at):
    file = root / "file"
    file.write_text("a")
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        for change in (
            file.unlink,
            lambda: file.write_text("a"),
            lambda: theirs_added(file),
            lambda: os.truncate(file, 1),
        ):
            change()
            assert await seen.next() == "key"


async def test_w4_a_file_in_directories_that_do_not_exist_yet(watching, seen, root, at):
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


async def test_w9_links_retargeted_and_targets_changed(watching, seen, root, at):
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


async def test_w9_a_link_that_comes_to_point_outside_is_told_once(watching, seen, root, outside, at):
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


async def test_w1_a_chmod_and_a_touch_are_not_told(watching, seen, root, at):
    (root / "file").write_text("a")
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        await watcher.watch("other", at("other"))
        (root / "file").chmod(0o600)
        os.utime(root / "file")
        (root / "other").touch()
        assert await seen.next() == "other"


@pytest.mark.slow
async def test_w5_endless_writing_is_told_while_it_goes_on(watching, seen, root, at, monkeypatch):
    """No moment counts as quiet here, so it does not matter how fast is written. The rate: see `test_pacing`."""
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


async def test_changes_while_the_set_changes_are_not_lost(watching, seen, root, at):
    async with watching() as watcher:
        for i in range(30):
            await watcher.watch(str(i), at(f"{i}/file"))
            (root / str(i)).mkdir()
            (root / str(i) / "file").write_text("x")
        missing = {str(i) for i in range(30)}
        while missing:
            missing.discard(await seen.next())


async def test_w11_unwatching_one_leaves_the_other(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("one", at("file"))
        await watcher.watch("two", at("file"))
        watcher.unwatch("one")
        (root / "file").touch()
        assert await seen.next() == "two"
        assert seen.drain() == 0


@pytest.mark.slow
async def test_a_file_in_a_watched_directory_makes_it_look_at_no_other(watching, seen, root, at, monkeypatch):
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


async def test_a_notice_that_comes_with_a_change_of_the_set_is_not_lost(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("one", at("one"))
        await watcher.watch("two", at("two"))
        for text in "abc":
            (root / "two").write_text(text)
            assert await seen.next() == "two"
            (root / "two").write_text(text * 2)
            await watcher.watch("one", at("one"))
            assert await seen.next() == "two"


async def test_a_change_before_a_new_directory_is_armed_is_not_lost(watching, seen, root, at, monkeypatch):
    (root / "below").mkdir()
    async with watching() as watcher:
        await watcher.watch("first", at("first"))
        (root / "first").write_text("a")  # told once its directory is armed
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


async def test_a_new_entry_changes_the_listing(watching, seen, root):
    async with watching() as watcher:
        await watcher.watch_listing("listing", seen)
        (root / "file").touch()
        assert await seen.next() == "listing"
        (root / "file").write_text("x")
        (root / "file").unlink()
        assert await seen.next() == "listing"
        assert seen.drain() == 0


@pytest.mark.slow
async def test_an_undecodable_name_ends_nothing_and_is_watched_like_others(watching, seen, root, at):
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
async def test_w7_without_notices_changes_are_found_by_looking(watching, seen, root, at):
    async with watching(notices=Notices(refusing)) as watcher:
        await watcher.watch("key", at("file"))
        await until(lambda: watcher.is_polling)
        (root / "file").write_text("a")
        assert await seen.next() == "key"
        assert watcher.health == {"watched": 1, "polled": 1, "degraded": True}
        (root / "file").write_text("b")
        assert await seen.next() == "key"


async def test_w7_who_wants_to_know_is_told_that_it_looks_and_that_it_need_not_any_more(watching, at):
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
        await until(lambda: not notices._watched)  # or it would not ask again for half a minute
        await watcher.watch("key", at("file"))
        await until(lambda: polled[-1] is False)


async def test_w8_what_notices_do_not_reach_is_polled_and_the_rest_is_not(watching, seen, root, at, caplog):
    caplog.set_level("INFO")
    for name in ("far", "near"):
        (root / name).mkdir()
    async with watching(local=lambda place: place.parts[0] == "near") as watcher:
        await watcher.watch("far", at("far/file"))
        (root / "far" / "file").write_text("a")
        assert await seen.next() == "far"
        assert inotify() == 0
        await watcher.watch("near", at("near/file"))
        (root / "near" / "file").write_text("a")
        assert await seen.next() == "near"
        assert watcher.health == {"watched": 2, "polled": 1, "degraded": False}
    assert caplog.text.count("polled every second") == 1


async def test_w8_a_far_file_system_that_does_not_answer_holds_up_nothing_else(watching, seen, root, at, monkeypatch):
    looking, answer = threading.Event(), threading.Event()
    original = WatchedPlace.check

    def check(spot, noticed):
        if spot.last is not None and "far" in spot.place.parts:
            looking.set()
            assert answer.wait(30)
        return original(spot, noticed)

    # A file system that does not answer can't be had in a test.
    monkeypatch.setattr(WatchedPlace, "check", check)
    async with watching(local=lambda place: "far" not in place.parts) as watcher:
        await watcher.watch("far", at("far"))
        await watcher.watch("near", at("near"))
        await until(looking.is_set)
        (root / "near").touch()
        assert await seen.next() == "near"
        watcher.unwatch("far")
        answer.set()


async def test_watching_a_key_again_hides_no_change_from_who_watched_it_before(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        (root / "file").touch()
        await watcher.watch("key", at("file"))
        assert await seen.next() == "key"


async def test_of_two_who_begin_to_watch_a_glob_at_once_one_is_enough(watching, seen, root, files, at):
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


async def test_w7_a_change_whose_notice_was_lost_is_found_by_the_sweep(watching, seen, root, at, monkeypatch):
    monkeypatch.setattr(SWEEP, 0.01)
    async with watching(notices=Notices(lambda _: Mute())) as watcher:
        await watcher.watch("key", at("file"))
        for text in "ab":
            (root / "file").write_text(text)
            assert await seen.next() == "key"
        assert watcher.health == {"watched": 1, "polled": 0, "degraded": False}


async def test_a_notice_that_is_lost_as_others_are_handed_over_is_made_up_for(watching, seen, root, at):
    class Losing:
        """A watch that loses the notices about one file, as watchfiles does at times."""

        def __init__(self, directories):
            self._watch = open_watch(directories)
            self.close = self._watch.close

        def watch(self, *arguments):
            changes = self._watch.watch(*arguments)
            return changes if isinstance(changes, str) else {one for one in changes if not one[1].endswith("lost")}

    async with watching(notices=Notices(Losing)) as watcher:
        for name in ("other", "lost"):
            await watcher.watch(name, at(name))
        (root / "other").touch()
        assert await seen.next() == "other"
        (root / "lost").touch()
        (root / "other").write_text("x")
        assert {await seen.next(), await seen.next()} == {"lost", "other"}


async def test_notices_without_end_do_not_make_it_look_at_everything_all_the_time(watching, root, at, monkeypatch):
    looks = []

    def look_slowly(target, noticed):
        if any(path.endswith("idle") for path in target.trail):
            looks.append(target)
            time.sleep(0.5)
        return check_target(target, noticed)

    async with watching() as watcher:
        await watcher.watch("idle", at("idle"))
        await watcher.watch("busy", at("busy"))
        await anyio.sleep(0.5)
        monkeypatch.setattr("servers.filesystem.watch.watcher.check_target", look_slowly)
        for number in range(10):
            (root / "busy").write_text(str(number))
            await anyio.sleep(0.3)
    # A look of half a second is not repeated for ten seconds.
    assert len(looks) == 1


async def test_w17_more_than_the_most_are_refused_and_the_rest_goes_on(watching, seen, root, at, monkeypatch):
    monkeypatch.setattr("servers.filesystem.watch.watcher.MAX_WATCHED", 2)
    async with watching() as watcher:
        for key in ("one", "two", "two"):
            await watcher.watch(key, at(key))
        with pytest.raises(FilesError, match="2 entries are watched, which is the limit"):
            await watcher.watch("three", at("three"))
        (root / "two").touch()
        assert await seen.next() == "two"


async def test_w17_of_those_that_begin_at_once_no_more_are_watched_and_the_rest_holds_nothing(
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


async def test_of_two_watches_of_a_key_that_begin_at_once_one_holds_nothing(watching, seen, root, at):
    (root / "file").touch()
    async with watching() as watcher:
        with_room(watcher, 100)
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(watcher.watch_tree, "key", at("."), ["*"], seen)
        assert room_left(watcher) == 100 - 1


async def test_a_write_concerns_the_entry_its_directory_and_what_is_in_it(watching, at):
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
async def test_w17_a_thousand_watches_that_came_and_went_leave_nothing(watching, at):
    before = len(settled_descriptors())
    async with watching() as watcher:
        for i in range(1_000):
            await watcher.watch(str(i), at(f"{i % 10}/file"))
            watcher.unwatch(str(i))
        await until(lambda: inotify() == 0)
        assert watcher.health["watched"] == 0
        await until(lambda: len(descriptors()) <= before)


@pytest.mark.slow
async def test_w14_a_root_deleted_and_made_again(watching, seen, root, at):
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


async def test_w14_a_root_that_is_moved_stays_the_one_that_was_opened(watching, seen, root, at):
    async with watching() as watcher:
        await watcher.watch("key", at("file"))
        await until(lambda: inotify() == 1)
        root.rename(root.parent / "moved")
        (root.parent / "moved" / "file").write_text("a")
        assert await seen.next() == "key"


async def test_w10_a_directory_is_told_when_its_listing_changes(watching, seen, root, at):
    (root / "dir").mkdir()
    async with watching() as watcher:
        await watcher.watch("key", at("dir"))
        (root / "dir" / "file").touch()
        assert await seen.next() == "key"
        (root / "dir" / "file").write_text("x")
        (root / "dir" / "sub").mkdir()
        assert await seen.next() == "key"
        assert seen.drain() == 0


async def test_w10_a_glob_is_told_of_what_it_matches_at_any_depth(watching, seen, root, files, at):
    async with watching() as watcher:
        await GlobTrees(watcher, seen).watch("key", at("src"), "./**/*.py", files)
        (root / "src" / "deep" / "deeper").mkdir(parents=True)
        file = root / "src" / "deep" / "deeper" / "a.py"
        for change in (file.touch, lambda: file.write_text("x"), file.unlink):
            change()
            assert await seen.next() == "key"


async def test_w10_a_glob_is_not_told_of_the_rest(watching, seen, root, files, at):
    async with watching() as watcher:
        await GlobTrees(watcher, seen).watch("key", at("."), "./*.py", files)
        await watcher.watch("other", at("b.txt"))
        (root / "sub").mkdir()
        for path in ("a.txt", "sub/a.py", "b.txt"):
            (root / path).touch()
        assert await seen.next() == "other"
        assert seen.drain() == 0


async def test_w16_what_is_closed_or_outside_behind_a_link_is_refused(watching, seen, root, outside, files, at):
    (root / ".env").touch()
    (root / "link").symlink_to(".env")
    (root / "out").symlink_to(outside)
    async with watching() as watcher:
        with pytest.raises(FilesError, match="outside the allowed"):
            await watcher.watch("key", at("link"))
        with pytest.raises(FilesError, match="outside the allowed"):
            await GlobTrees(watcher, seen).watch("key", at("out"), "./*", files)


async def test_an_owner_has_no_more_room_than_is_left_for_others(watching, seen, root, files, at):
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
    """How many inotify descriptors this process has."""
    return descriptors().count("anon_inode:inotify")

"""The journal of changes, read from a cursor on."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.filesystem.errors import FilesError
from servers.filesystem.search.page import Page
from servers.filesystem.watch import journal as module
from servers.filesystem.watch.journal import Journal, Selection
from servers.filesystem.watch.watcher import Watcher


async def ignore(_key):
    pass


async def never_check(remote):
    """A check that never ends."""
    await anyio.sleep_forever()


@asynccontextmanager
async def journal_of(files, **options):
    watcher = Watcher(files, ignore)
    journal = Journal(files, watcher, **options)
    async with anyio.create_task_group() as group:
        group.start_soon(watcher.run)
        group.start_soon(journal.run)
        journal.watcher = watcher
        yield journal
        group.cancel_scope.cancel()


@pytest.fixture
def everything(root):
    return Selection([str(root)], None)


@pytest.fixture
def create(root, at):
    """Create files, and report them to the journal."""

    def call(journal, *names):
        for name in names:
            (root / name).touch()
            journal.add_write(at(name))

    return call


def kinds_and_names(page):
    return [(change.kind, change.path.rsplit("/", 1)[1]) for change in page.changes]


async def test_the_first_read_gives_a_cursor_and_the_next_waits_for_changes(files, root, everything):
    (root / "old").touch()
    async with journal_of(files) as journal:
        page = await journal.read(Page(10, 90_000, None), everything, 0)
        assert (page.changes, page.overflow, page.more) == ((), False, False)
        assert (await journal.read(Page(10, 90_000, page.cursor), everything, 0)).changes == ()
        (root / "file").touch()
        page = await journal.read(Page(10, 90_000, page.cursor), everything, 30)
        assert kinds_and_names(page) == [("created", "file")]
        assert page.changes[0].path == str(root / "file")
        (root / "file").unlink()
        assert kinds_and_names(await journal.read(Page(10, 90_000, page.cursor), everything, 30)) == [
            ("deleted", "file")
        ]


async def test_several_readers_get_the_same_pages_of_limited_length(files, everything, create):
    async with journal_of(files) as journal:
        cursor = (await journal.read(Page(10, 90_000, None), everything, 0)).cursor
        create(journal, *"abc")
        for _ in range(2):
            first = await journal.read(Page(2, 90_000, cursor), everything, 0)
            assert (kinds_and_names(first), first.more) == ([("created", "a"), ("created", "b")], True)
        second = await journal.read(Page(2, 90_000, first.cursor), everything, 0)
        assert (kinds_and_names(second), second.more) == ([("created", "c")], False)


async def test_changes_over_the_byte_limit_come_on_the_next_page(files, everything, create):
    async with journal_of(files) as journal:
        cursor = (await journal.read(Page(10, 90_000, None), everything, 0)).cursor
        create(journal, *"abc")
        page = await journal.read(Page(10, 250, cursor), everything, 0)
        assert (page.changes != (), page.more) == (True, True)
        rest = await journal.read(Page(10, 90_000, page.cursor), everything, 0)
        assert [*kinds_and_names(page), *kinds_and_names(rest)] == [("created", name) for name in "abc"]


async def test_a_name_with_its_uri_counts_against_the_byte_limit(files, everything, create):
    async with journal_of(files) as journal:
        cursor = (await journal.read(Page(10, 90_000, None), everything, 0)).cursor
        create(journal, *(f"{number}\n{'x' * 100}" for number in range(4)))
        page = await journal.read(Page(10, 1_200, cursor), everything, 0)
        assert page.more
        assert sum(len(change.path) for change in page.changes) < 1_200


async def test_a_late_reader_gets_an_overflow_and_can_continue(files, everything, create):
    async with journal_of(files, size=2) as journal:
        cursor = (await journal.read(Page(10, 90_000, None), everything, 0)).cursor
        create(journal, *"ab")
        # A full journal is no overflow yet.
        assert kinds_and_names(await journal.read(Page(10, 90_000, cursor), everything, 0)) == [
            ("created", "a"),
            ("created", "b"),
        ]
        create(journal, "c")
        page = await journal.read(Page(10, 90_000, cursor), everything, 0)
        assert (page.changes, page.overflow) == ((), True)
        create(journal, "d")
        assert kinds_and_names(await journal.read(Page(10, 90_000, page.cursor), everything, 0)) == [("created", "d")]


async def test_a_cursor_of_another_run_overflows_and_an_invalid_one_is_refused(files, everything):
    async with journal_of(files) as journal:
        assert (await journal.read(Page(10, 90_000, "0123abcd-5"), everything, 0)).overflow
        for cursor in ("", "x", "a-b", "a-" + "1" * 100, "a-²"):
            with pytest.raises(FilesError, match="this is not a cursor"):
                await journal.read(Page(10, 90_000, cursor), everything, 0)


async def test_a_waiting_read_ends_with_a_selected_change_only(files, root, create):
    async with journal_of(files) as journal:
        (root / "sub").mkdir()
        python = Selection([str(root)], "*.py")
        cursor = (await journal.read(Page(10, 90_000, None), python, 0)).cursor
        page = []

        async def read():
            page.append(await journal.read(Page(10, 90_000, cursor), python, 30))

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            create(journal, "a.txt")
            await anyio.wait_all_tasks_blocked()
            assert not page
            create(journal, "sub/a.py")
        assert kinds_and_names(page[0]) == [("created", "a.py")]


async def test_repeated_changes_of_a_file_are_merged(files, root, at, everything):
    file = root / "a"
    file.touch()
    one, two, three = (partial(file.write_text, text) for text in "123")
    async with journal_of(files) as journal:
        cursor = (await journal.read(Page(10, 90_000, None), everything, 0)).cursor
        for act in (one, two, file.unlink, file.touch, three):
            act()
            journal.add_write(at("a"))
            page = await journal.read(Page(10, 90_000, cursor), everything, 0)
        assert [change.kind for change in page.changes] == ["modified", "deleted", "created"]
        assert not page.more


async def test_watching_ends_without_readers_and_restarts(files, root, everything):
    async with journal_of(files, idle=0) as journal:
        cursor = (await journal.read(Page(10, 90_000, None), everything, 0)).cursor
        with anyio.fail_after(30):
            while journal.watcher.health["watched"]:
                await anyio.lowlevel.checkpoint()
        journal._idle = 600  # or the watch would end before the read
        page = await journal.read(Page(10, 90_000, cursor), everything, 0)
        assert page.overflow
        (root / "file").touch()
        assert kinds_and_names(await journal.read(Page(10, 90_000, page.cursor), everything, 30)) == [
            ("created", "file")
        ]


async def test_a_root_within_another_is_watched_once(root, everything):
    (root / "inner").mkdir()
    files = RootedFiles(Roots([root / "inner", root]))
    async with journal_of(files) as journal:
        cursor = (await journal.read(Page(10, 90_000, None), everything, 0)).cursor
        (root / "inner" / "file").touch()
        inner = Selection([str(root / "inner")], None)
        assert kinds_and_names(await journal.read(Page(10, 90_000, cursor), inner, 30)) == [("created", "file")]
        assert journal.watcher.health["watched"] == 1
    files.close()


def test_a_selection_includes_matching_paths_below_its_directories():
    taken = [("/r/a", None), ("/r", None), ("/r/x/a.py", "*.py"), ("/r/x/a.py", "x/*.py"), ("/s/a.py", "*.py")]
    left = [("/rx/a", None), ("/r/x/a.txt", "*.py"), ("/x/a.py", "*.py")]
    assert [row for row in taken if not Selection(["/r", "/s"], row[1]).includes(row[0])] == []
    assert [row for row in left if Selection(["/r", "/s"], row[1]).includes(row[0])] == []


async def test_writes_of_this_server_are_recorded_immediately(files, root, at, everything, monkeypatch):
    """They are recorded once: the later notice finds nothing new."""
    async with journal_of(files) as journal:
        cursor = (await journal.read(Page(10, 90_000, None), everything, 0)).cursor
        # So that no notice records the change first.
        monkeypatch.setattr(journal.watcher, "_check_and_notify", never_check)
        for act, kind in (
            (lambda: (root / "file").touch(), "created"),
            (lambda: (root / "file").write_text("a"), "modified"),
            (lambda: (root / "file").unlink(), "deleted"),
        ):
            act()
            journal.add_write(at("file"))
            page = await journal.read(Page(10, 90_000, cursor), everything, 0)
            assert kinds_and_names(page) == [(kind, "file")]
            cursor = page.cursor
        (root / "new" / "sub").mkdir(parents=True)
        (root / "link").symlink_to("new/sub")
        (root / "link" / "file").touch()
        journal.add_write(at("link/file"))
        page = await journal.read(Page(10, 90_000, cursor), everything, 0)
        assert kinds_and_names(page) == [
            ("created", "link"),
            ("created", "new"),
            ("created", "sub"),
            ("created", "file"),
        ]
        assert (await journal.read(Page(10, 90_000, page.cursor), everything, 0)).changes == ()


async def test_events_are_recorded_in_steps_and_kept_if_the_reader_is_cancelled(
    files, create, everything, monkeypatch
):
    monkeypatch.setattr(module, "STEP_PLACES", 2)
    async with journal_of(files) as journal:
        cursor = (await journal.read(Page(10, 90_000, None), everything, 0)).cursor
        monkeypatch.setattr(journal.watcher, "_check_and_notify", never_check)
        create(journal, *"abcde")
        seen = []
        with anyio.CancelScope() as scope:

            def check():
                seen.append(journal.cursor)
                if journal.cursor != cursor:
                    scope.cancel()
                if not journal.cursor.endswith("-5"):
                    asyncio.get_running_loop().call_soon(check)

            check()
            await journal.read(Page(10, 90_000, cursor), everything, 0)
        assert [cursor.partition("-")[2] for cursor in dict.fromkeys(seen)] == ["0", "2", "4", "5"]
        page = await journal.read(Page(10, 90_000, cursor), everything, 0)
        assert kinds_and_names(page) == [("created", name) for name in "abcde"]


async def test_a_first_read_that_fails_at_the_second_root_leaves_no_watch(tmp_path, monkeypatch):
    roots = [tmp_path / name for name in ("one", "two")]
    for path in roots:
        path.mkdir()
        (path / "old").touch()
    files, both = RootedFiles(Roots(roots)), Selection([str(path) for path in roots], None)
    async with journal_of(files) as journal:
        watch_tree = journal.watcher.watch_tree

        async def fail_at_the_second(key, place, *more):
            if place.root_index:
                raise FilesError("too_many", "", "are watched")
            return await watch_tree(key, place, *more)

        with monkeypatch.context() as patch:
            patch.setattr(journal.watcher, "watch_tree", fail_at_the_second)
            with pytest.raises(FilesError):
                await journal.read(Page(10, 90_000, None), both, 0)
        cursor = (await journal.read(Page(10, 90_000, None), both, 0)).cursor
        (roots[0] / "old").write_text("new")
        journal.add_write(files.roots.place(str(roots[0] / "old")))
        assert kinds_and_names(await journal.read(Page(10, 90_000, cursor), both, 30)) == [("modified", "old")]
    files.close()

import os
import sys
import threading
import time

import anyio
import pytest
from anyio import to_thread

from servers.common.files import locks
from servers.common.files.locks import lock_entries
from shared.coded_errors import PathError

if sys.platform != "win32":
    import fcntl


@pytest.fixture
def entry(files, at):
    with files.locate(at("file")) as located:
        yield located


def test_the_second_holder_waits_for_the_first(entry):
    entered = threading.Event()

    def second():
        with lock_entries(entry):
            entered.set()

    thread = threading.Thread(target=second)
    with lock_entries(entry):
        thread.start()
        assert not entered.wait(0.05)
    thread.join(30)
    assert entered.is_set()


async def ends_when_cancelled(entry, is_awaited):
    """Cancel a call once `is_awaited`, and return whether it ended without the lock."""

    def wait():
        with lock_entries(entry):
            pass

    async with anyio.create_task_group() as tasks:
        ended = anyio.Event()

        async def call():
            try:
                await to_thread.run_sync(wait)
            except anyio.get_cancelled_exc_class():
                ended.set()
                raise

        tasks.start_soon(call)
        while not is_awaited():
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    return ended.is_set()


async def test_a_cancelled_call_stops_waiting_for_its_process(entry):
    with lock_entries(entry):
        (shared,) = locks._locks.values()
        assert await ends_when_cancelled(entry, lambda: shared.users == 2)
    assert locks._locks == {}


def has_waiter(lock, entered):
    """Wait until the lock has a second user or was `entered`, and return whether it was not entered."""
    while lock.users < 2 and not entered.is_set():
        time.sleep(0.001)
    return not entered.is_set()


def test_several_names_are_locked_in_order(files, at):
    entered = threading.Event()
    with files.locate(at("a")) as first, files.locate(at("b")) as second:

        def both():
            with lock_entries(second, first):
                entered.set()

        thread = threading.Thread(target=both)
        with lock_entries(first):
            thread.start()
            assert has_waiter(locks._locks[locks._key(first)], entered)
            assert locks._key(second) not in locks._locks
        thread.join(30)
    assert entered.is_set()


def test_a_third_holder_waits_for_the_second(entry):
    second, third, go = threading.Event(), threading.Event(), threading.Event()

    def take(entered):
        with lock_entries(entry):
            entered.set()
            go.wait(30)

    threads = [threading.Thread(target=take, args=(entered,)) for entered in (second, third)]
    with lock_entries(entry):
        threads[0].start()
        assert has_waiter(locks._locks[locks._key(entry)], second)
    assert second.wait(30)
    threads[1].start()
    try:
        assert has_waiter(locks._locks.setdefault(locks._key(entry), locks._Lock()), third)
    finally:
        go.set()
        for thread in threads:
            thread.join(30)


def test_locking_a_name_twice_does_not_deadlock(entry):
    with lock_entries(entry, entry):
        pass


def test_a_released_lock_is_removed(entry):
    with pytest.raises(KeyError), lock_entries(entry):
        raise KeyError
    assert locks._locks == {}


def test_equal_names_in_two_directories_have_separate_locks(root, files, at):
    for name in ("a", "b"):
        (root / name).mkdir()
    with files.locate(at("a/file")) as one, files.locate(at("b/file")) as other:
        entered = threading.Event()

        def second():
            with lock_entries(other):
                entered.set()

        thread = threading.Thread(target=second)
        with lock_entries(one):
            thread.start()
            assert entered.wait(10)
        thread.join()


# Only `_locks` shows that a released lock is removed.

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")


@posix
def test_a_file_locked_by_another_process_is_busy(root, entry, monkeypatch, no_leak):
    (root / "file").write_text("old")
    monkeypatch.setattr(locks, "TIMEOUT_SECONDS", 0.05)
    with (root / "file").open() as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        with pytest.raises(PathError) as caught, lock_entries(entry):
            pass
        fcntl.flock(theirs, fcntl.LOCK_UN)
        with lock_entries(entry):
            pass
    assert (caught.value.code, caught.value.suggestion) == ("busy", "Try again.")
    assert locks._locks == {}


@posix
async def test_a_cancelled_call_stops_waiting_for_another_process(root, entry, monkeypatch, no_leak):
    (root / "file").write_text("old")
    monkeypatch.setattr(locks, "TIMEOUT_SECONDS", 60)
    with (root / "file").open() as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        assert await ends_when_cancelled(entry, lambda: locks._locks)
    assert locks._locks == {}


@posix
def test_a_file_replaced_while_waiting_is_locked_instead(root, entry, monkeypatch, no_leak):
    (root / "file").write_text("old")
    (root / "new").write_text("new")
    with (root / "file").open() as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)

        def replaced(_seconds):
            (root / "new").replace(root / "file")
            fcntl.flock(theirs, fcntl.LOCK_UN)

        monkeypatch.setattr(locks.time, "sleep", replaced)
        with lock_entries(entry), (root / "file").open() as now:
            with pytest.raises(BlockingIOError):
                fcntl.flock(now, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_locking_two_names_of_one_file_does_not_deadlock(root, files, at):
    (root / "a").write_text("one")
    os.link(root / "a", root / "b")
    with files.locate(at("a")) as one, files.locate(at("b")) as other, lock_entries(one, other):
        pass


@posix
def test_locking_a_pipe_does_not_wait(root, files, at):
    os.mkfifo(root / "file")
    with files.locate(at("file")) as located, lock_entries(located):
        pass


def test_locking_a_pipe_does_not_open_it(entry, root):
    os.mkfifo(root / "file")
    with lock_entries(entry), pytest.raises(OSError, match="No such device"):
        os.open(root / "file", os.O_WRONLY | os.O_NONBLOCK)  # succeeds if the pipe has a reader

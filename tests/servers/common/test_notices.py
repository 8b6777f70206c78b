"""Notices of possible changes in directories, and polling instead."""

import os
import subprocess
import sys
import threading

import anyio
import pytest

from servers.common.notices import Notices, open_watch, wait_in_thread


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def notices():
    opened = Notices()
    yield opened
    opened.close()


def test_a_change_in_a_directory_is_noticed(notices, root):
    assert notices.arm([str(root)])
    assert notices.wait(threading.Event(), 0.01) == set()
    (root / "file").touch()
    assert notices.wait(threading.Event(), 30) == {f"{root}/file"}


def test_only_other_directories_need_a_new_watch(notices, root):
    assert [notices.arm([]), notices.arm([str(root)]), notices.arm([str(root)])] == [False, True, False]
    assert not notices.is_polling
    root.rename(root.parent / "old")
    root.mkdir()
    assert notices.arm([str(root)])


@pytest.mark.parametrize("change", [1, 3], ids=["came", "went"])
def test_a_recreated_directory_with_the_same_inode_needs_a_new_watch(root, change):
    class Watch:
        def watch(self, *_):
            return {(change, str(root))}

        def close(self):
            pass

    notices = Notices(lambda _: Watch())
    notices.arm([str(root)])
    assert notices.wait(threading.Event(), 1) == {str(root)}
    assert notices.watches(str(root))
    assert notices.arm([str(root)])
    assert not notices.arm([str(root)])


def test_a_set_stop_event_ends_the_wait_and_requests_a_full_check(notices, root):
    notices.arm([str(root)])
    stop = threading.Event()
    stop.set()
    assert notices.wait(stop, 30) is None


def refusing(_directories):
    raise OSError("inotify watch limit reached")


def test_a_refused_watch_starts_polling_and_is_logged(root, caplog):
    notices = Notices(refusing)
    notices.arm([str(root)])
    assert (notices.is_polling, notices.has_no_watch) == (True, True)
    assert "inotify watch limit reached" in caplog.text


def test_a_refused_watch_is_not_retried_at_once(root):
    requests = []
    notices = Notices(lambda directories: requests.append(directories) or refusing(directories))
    for _ in range(3):
        assert notices.arm([str(root)]) is False or len(requests) == 1
    assert len(requests) == 1


def test_polling_ends_with_the_next_successful_watch(root):
    openers = [refusing, open_watch]
    notices = Notices(lambda directories: openers.pop(0)(directories))
    notices.arm([str(root)])
    (root / "sub").mkdir()
    notices.arm([str(root), str(root / "sub")])
    assert not notices.is_polling
    notices.close()


def test_the_old_watch_is_closed_first_if_both_exceed_the_limit(root, caplog):
    def opener(directories):
        opened.append(directories)
        if len(opened) == 2:
            refusing(directories)
        return open_watch(directories)

    opened = []
    (root / "sub").mkdir()
    notices = Notices(opener)
    notices.arm([str(root)])
    assert notices.arm([str(root), f"{root}/sub"])
    assert (notices.is_polling, notices.has_no_watch, caplog.text) == (False, False, "")
    notices.close()


def test_a_removed_directory_does_not_start_polling(root):
    def too_late(_directories):
        raise FileNotFoundError

    notices = Notices(too_late)
    notices.arm([str(root)])
    assert (notices.is_polling, notices.has_no_watch) == (False, True)


def test_an_unreadable_directory_does_not_prevent_watching_others(notices, root, monkeypatch):
    (root / "secret").mkdir()
    monkeypatch.setattr("os.access", lambda path, _mode: not path.endswith("secret"))
    assert notices.arm([str(root), f"{root}/secret"])
    assert (notices.watches(str(root)), notices.watches(f"{root}/secret")) == (True, False)


def test_a_watch_ended_by_an_undecodable_name_is_replaced(notices, root):
    notices.arm([str(root)])
    open(os.fsencode(root) + b"/\xff", "w").close()
    assert notices.wait(threading.Event(), 30) is None
    assert notices.has_no_watch
    notices._retry_at = 0  # the pause before the retry is over
    assert notices.arm([str(root)])
    (root / "file").touch()
    assert notices.wait(threading.Event(), 30) == {f"{root}/file"}


def test_a_failed_watch_is_not_replaced_at_once(notices, root):
    notices.arm([str(root)])
    open(os.fsencode(root) + b"/\xff", "w").close()
    notices.wait(threading.Event(), 30)
    assert not notices.arm([str(root)])


def test_a_flood_of_notices_requests_a_full_check(notices, root, monkeypatch):
    monkeypatch.setattr("servers.common.notices.CHECK_ALL_THRESHOLD", 1)  # some thousands by default
    notices.arm([str(root)])
    (root / "file").touch()
    assert notices.wait(threading.Event(), 30) is None


def test_missing_and_undecodable_directories_are_not_watched(notices, root):
    assert notices.arm([str(root), "/none", f"{root}/\udcff"])
    assert not notices.is_polling


def test_watchfiles_is_loaded_with_the_first_watch_only():
    code = "import sys, servers.common.notices; sys.exit('watchfiles' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_cancellation_ends_a_wait_in_a_thread():
    begun, was_stopped = anyio.Event(), []

    def wait(stop, seconds):
        anyio.from_thread.run_sync(begun.set)
        was_stopped.append(stop.wait(seconds))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_in_thread, wait, 20, anyio.CapacityLimiter(1))
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert was_stopped == [True]

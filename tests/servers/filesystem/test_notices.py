import subprocess
import sys
import threading

import pytest

from servers.filesystem.watching.notices import Notices


@pytest.fixture
def notices():
    opened = Notices()
    yield opened
    opened.close()


def test_a_change_in_a_directory_is_noticed(notices, root):
    assert notices.arm([str(root)])
    (root / "file").touch()
    assert notices.wait(threading.Event()) == {f"{root}/file"}


def test_the_same_directories_need_no_new_watch(notices, root):
    notices.arm([str(root)])
    assert not notices.arm([str(root)])


def test_a_directory_made_again_does(notices, root):
    notices.arm([str(root)])
    root.rename(root.parent / "old")
    root.mkdir()
    assert notices.arm([str(root)])


def test_a_set_stop_ends_the_wait_and_asks_for_a_look(notices, root):
    notices.arm([str(root)])
    stop = threading.Event()
    stop.set()
    assert notices.wait(stop) is None


def test_without_notices_it_says_so(notices, root):
    notices.arm([])
    notices.arm([str(root)])
    assert not notices.degraded


def test_names_it_cannot_watch_are_left_out(notices, root):
    assert notices.arm([str(root), "/none", f"{root}/\udcff"])
    assert not notices.degraded


def test_watchfiles_is_loaded_with_the_first_watch_only():
    code = "import sys, servers.filesystem.watching.watcher; sys.exit('watchfiles' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""The walk by handles over a simulated Windows: what differs from POSIX. The rest is in the tests of every walk."""

import errno
import os
import sys
from itertools import count

import pytest

from shared.kit.rooted.atomic import rename_to_free, replace
from shared.kit.rooted.directories import entry_in
from shared.kit.rooted.entries import (
    current,
    make_directory,
    narrow_mode,
    open_to_append,
    open_to_read,
    remove_directory,
    unlink,
)
from shared.kit.rooted.entries import opened as entry_opened
from shared.kit.rooted.files import RootedFiles
from shared.kit.rooted.roots import Roots
from shared.kit.rooted.windows import Handles, HandleWalker
from tests.descriptors import descriptors, left_open
from tests.shared.kit.rooted.conftest import SECRET, code, outcome, read, swapping
from tests.shared.kit.rooted.simulated import SimulatedWindows

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Windows is simulated on Linux only")


@pytest.fixture
def system():
    return SimulatedWindows()


@pytest.fixture
def windows(root, system):
    roots = Roots([root], writable=True)
    files = RootedFiles(roots, walker=HandleWalker(roots, system))
    yield files
    files.close()


def test_names_have_no_case_and_keep_theirs(windows, root):
    (root / "Dir").mkdir()
    (root / "Dir" / "File").write_text("yes")
    assert read(windows, "dir/FILE") == "yes"
    with windows.locate(windows.roots.place("dir/fILE")) as entry:
        replace(entry, b"new", entry.stat)
    assert (os.listdir(root / "Dir"), read(windows, "Dir/File")) == (["fILE"], "new")


def test_what_windows_takes_for_something_else_is_not_asked_for(windows, system, root):
    (root / "dir").mkdir()
    (root / "file").write_text(SECRET)
    for written in ("con", "dir/NUL.txt", "file:stream", "file::$DATA", "file.", "file ", "a\\b", "a?"):
        assert code(windows, written) == "bad_path"
    assert set(system.asked) <= {"dir"}


def test_what_is_not_one_name_or_too_long_is_not_asked_for(opened, system, outside):
    asked = list(system.asked)
    names = dict.fromkeys(["", "..", "../root_evil", "..\\root_evil"], errno.EINVAL)
    names |= dict.fromkeys(["a" * 256, "\U0001f600" * 128, "a" * 32_768], errno.ENAMETOOLONG)
    for name, number in names.items():
        with pytest.raises(OSError, match="Errno") as caught:
            opened.system.stat(opened, name)
        assert (caught.value.errno, system.asked) == (number, asked)


def test_a_link_leads_to_no_device_either(windows, system, root):
    (root / "link").symlink_to("con")
    assert code(windows, "link") == "bad_path"
    assert "con" not in system.asked


def test_a_short_name_shows_nothing_that_is_denied(windows, system, root):
    (root / ".env").write_text(SECRET)
    system.short["ENV~1"] = ".env"
    for written in (".env", ".ENV"):
        assert code(windows, written) == "denied"
    assert code(windows, "ENV~1") == "not_found"
    with windows.locate(windows.roots.place("file")) as entry, pytest.raises(OSError, match="Invalid"):
        replace(entry._replace(name="env~1"), b"mine", None)
    assert (root / ".env").read_text() == SECRET


def test_a_name_of_that_form_is_found_where_it_is_one(windows, root):
    (root / "copy~1").write_text("yes")
    assert read(windows, "COPY~1") == "yes"


@pytest.fixture
def opened(root, system):
    """The root as one directory, whose pauses are short."""
    handles = Handles(system, pause=0.000_01)
    here = handles.open_root(str(root))
    yield here
    os.close(here)


ACTS = {
    "look": lambda here: current(entry_in(here, "file")),
    "read": lambda here: os.close(open_to_read(entry_in(here, "file"))),
    "add": lambda here: os.close(open_to_append(entry_in(here, "file"))),
    "rename": lambda here: rename_to_free(entry_in(here, "file"), entry_in(here, "new")),
    "link": lambda here: here.system.link((here, "file"), (here, "new")),
    "remove": lambda here: unlink(entry_in(here, "file")),
    "make": lambda here: make_directory(entry_in(here, "made")),
}


@pytest.mark.parametrize("act", ACTS)
def test_who_is_in_the_way_is_waited_for_before_and_after_it_is_opened(opened, system, root, act):
    (root / "file").touch()
    system.in_the_way = 7
    system.at_the_end = 7 if act in ("rename", "link", "remove") else 0
    ACTS[act](opened)
    assert (system.in_the_way, system.at_the_end) == (0, 0)


def test_who_stays_in_the_way_is_not_waited_for_without_end(opened, system, root, no_leak):
    (root / "file").touch()
    for act in ACTS.values():
        system.in_the_way = 1_000
        with pytest.raises(PermissionError):
            act(opened)
        assert system.in_the_way > 900


def test_a_directory_has_no_permissions_to_take(opened, root):
    (root / "dir").mkdir()
    before = (root / "dir").stat().st_mode
    with entry_opened(entry_in(opened, "dir")) as directory:
        narrow_mode(directory, 0)
    assert (root / "dir").stat().st_mode == before


def test_a_link_is_not_opened_and_nothing_is_taken_for_another_kind(opened, root, outside):
    (root / "link").symlink_to(outside / "secret")
    (root / "dir").mkdir()
    (root / "file").touch()
    for act, name, number in (
        (open_to_read, "link", errno.ELOOP),
        (open_to_append, "link", errno.ELOOP),
        (unlink, "dir", errno.EISDIR),
        (remove_directory, "link", errno.ENOTDIR),
    ):
        with pytest.raises(OSError, match="Errno") as caught:
            act(entry_in(opened, name))
        assert caught.value.errno == number
    before = descriptors()
    for name in ("link", "file"):
        with pytest.raises(NotADirectoryError):
            opened.system.open_directory(opened, name)
    assert left_open(before) == []
    unlink(entry_in(opened, "link"))
    assert sorted(os.listdir(root)) == ["dir", "file"]
    assert (outside / "secret").exists()


@pytest.mark.slow
def test_swapping_a_directory_for_a_link_shows_nothing_outside(windows, root, outside):
    (root / "dir").mkdir()
    (root / "dir" / "secret").write_text("mine")
    (root / "link").symlink_to(outside)
    seen = set()
    with swapping(root):
        for i in count():
            seen.add(outcome(windows, "dir/secret"))
            if i > 1_000 and {"mine", "outside_roots"} <= seen:
                break
    assert SECRET not in seen

"""File metadata through every write: owner, group, mode, access control lists and extended attributes, on the file
system of temporary files and on one in memory."""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from servers.common.files.rooted_files import RootedFiles
from servers.common.files.roots import Roots
from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.move import copy, move
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.edit.write import write_file
from servers.filesystem.errors import FilesError
from tests.servers.filesystem.editing_files import code

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Python has extended attributes on Linux only")

ACL, DEFAULT_ACL = "system.posix_acl_access", "system.posix_acl_default"
NOBODY = 65534
IS_ROOT = sys.platform == "linux" and os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="gives files away: run it as root")
BASES = [Path(tempfile.gettempdir()), Path("/dev/shm")]


def acl(*entries):
    """Encodes an access control list: tag, permissions and id of each entry (acl(5), linux/posix_acl_xattr.h)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


ANYBODY = 0xFFFFFFFF
DENIED = acl((1, 6, ANYBODY), (2, 0, 1234), (4, 4, ANYBODY), (16, 6, ANYBODY), (32, 4, ANYBODY))
"""The owner reads and writes, the user 1234 nothing, all others read."""
ATTRIBUTES = {"user.origin": b"a\0b", "user.empty": b"", ACL: DENIED}
PRIVILEGED = {"trusted.mark": b"t", "security.selinux": b"system_u:object_r:etc_t:s0\0"}


@pytest.fixture(params=BASES, ids=str)
def place(request):
    """A directory that all users may enter."""
    if not request.param.is_dir():
        pytest.skip(f"there is no {request.param}")
    made = Path(tempfile.mkdtemp(dir=request.param)).resolve()
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def elsewhere(place):
    """A directory on another file system."""
    other = next((base for base in BASES if base.is_dir() and base.stat().st_dev != place.stat().st_dev), None)
    if other is None:
        pytest.skip("there is one file system only")
    made = Path(tempfile.mkdtemp(dir=other)).resolve()
    yield made
    shutil.rmtree(made)


def beneath(*roots):
    return RootedFiles(Roots(roots, writable=True))


def set_metadata(path, mode=0o664):
    """Gives a file all metadata that this process may set."""
    for name, value in {**ATTRIBUTES, **(PRIVILEGED if IS_ROOT else {})}.items():
        os.setxattr(path, name, value)
    path.chmod(mode)
    if IS_ROOT:
        os.chown(path, 1001, 1002)


def metadata_of(path):
    """Returns the owner, group, mode and extended attributes of a path."""
    found = path.lstat()
    attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return found.st_uid, found.st_gid, found.st_mode, attributes


def edit(files, path):
    return edit_files(files, [FileEdits(files.roots.place(str(path)), [Edit("old", "new")])])


def overwrite(files, path):
    return write_file(files, files.roots.place(str(path)), "new")


def append(files, path):
    return write_file(files, files.roots.place(str(path)), "new", "append")


ACTS = [edit, overwrite, append]


@pytest.mark.parametrize("act", ACTS)
def test_a_written_file_keeps_its_metadata(place, act):
    (place / "file").write_text("old\n")
    set_metadata(place / "file")
    before = metadata_of(place / "file")
    act(beneath(place), place / "file")
    assert "new" in (place / "file").read_text()
    assert metadata_of(place / "file") == before
    assert before[3].items() >= ATTRIBUTES.items()


@pytest.mark.parametrize("act", ACTS)
def test_a_written_file_inherits_no_access_control_list(place, act):
    (place / "file").write_text("old\n")
    (place / "file").chmod(0o640)
    os.setxattr(place, DEFAULT_ACL, DENIED)
    act(beneath(place), place / "file")
    assert metadata_of(place / "file")[2:] == (0o100640, {})


def test_a_new_file_inherits_the_default_access_control_list(place):
    os.setxattr(place, DEFAULT_ACL, DENIED)
    overwrite(beneath(place), place / "file")
    assert os.getxattr(place / "file", ACL) == DENIED


def test_an_unreadable_file_keeps_its_access_control_list(place):
    (place / "file").write_text("old\n")
    os.setxattr(
        place / "file", ACL, acl((1, 2, ANYBODY), (2, 0, 1234), (4, 0, ANYBODY), (16, 0, ANYBODY), (32, 0, ANYBODY))
    )
    before = metadata_of(place / "file")
    overwrite(beneath(place), place / "file")
    assert metadata_of(place / "file") == before


@pytest.mark.parametrize("act", ACTS)
def test_a_written_file_loses_its_capabilities(place, act):
    if not IS_ROOT:
        pytest.skip("gives a capability: run it as root")
    (place / "file").write_text("old\n")
    os.setxattr(place / "file", "security.capability", struct.pack("<IIIII", 0x02000000, 1, 0, 0, 0))
    act(beneath(place), place / "file")
    assert "security.capability" not in metadata_of(place / "file")[3]


@pytest.mark.parametrize("act", [edit, overwrite])
def test_a_write_that_would_lose_an_attribute_is_refused(place, act, monkeypatch):
    (place / "file").write_text("old\n")
    os.setxattr(place / "file", "user.origin", b"x")
    monkeypatch.setattr(os, "setxattr", refusing("user.origin"))
    with pytest.raises(FilesError, match=r"its attribute user\.origin can't be preserved") as refused:
        act(beneath(place), place / "file")
    assert refused.value.code == "metadata"
    assert ((place / "file").read_text(), os.listdir(place)) == ("old\n", ["file"])


def refusing(refused):
    real = os.setxattr

    def setxattr(file, name, value, *options, **more):
        if name == refused:
            raise PermissionError(1, "")
        real(file, name, value, *options, **more)

    return setxattr


def filled(folder):
    """Makes a tree of a file, a directory and a link, all with metadata."""
    (folder / "dir/inner").mkdir(parents=True)
    (folder / "dir/inner/file").write_text("old\n")
    (folder / "dir/link").symlink_to("inner/file")
    set_metadata(folder / "dir/inner/file", 0o604)
    set_metadata(folder / "dir/inner", 0o750)
    set_metadata(folder / "dir", 0o3770)
    os.setxattr(folder / "dir", DEFAULT_ACL, DENIED)
    if IS_ROOT:
        os.lchown(folder / "dir/link", 1003, 1004)
    return folder / "dir"


def metadata_of_all(folder):
    below = [folder, *sorted(folder.rglob("*"))]
    return {
        path.relative_to(folder): metadata_of(path) if not path.is_symlink() else path.lstat()[4:6] for path in below
    }


def times_of_all(folder):
    return [path.stat().st_mtime_ns for path in (folder, *sorted(folder.rglob("*"))) if not path.is_symlink()]


def acted(act, files, source, target):
    return act(files, files.roots.place(str(source)), files.roots.place(str(target)))


def test_a_copy_keeps_all_metadata(place):
    source = filled(place)
    os.setxattr(place, DEFAULT_ACL, DENIED)
    assert acted(copy, beneath(place), source, place / "copy").lost == []
    assert metadata_of_all(place / "copy") == metadata_of_all(source)


def test_a_copy_to_another_file_system_keeps_all_metadata(place, elsewhere):
    source = filled(place)
    assert acted(copy, beneath(place, elsewhere), source, elsewhere / "copy").lost == []
    assert metadata_of_all(elsewhere / "copy") == metadata_of_all(source)


def test_a_copy_reports_lost_attributes(place, monkeypatch):
    source = filled(place)
    monkeypatch.setattr(os, "setxattr", refusing("user.origin"))
    assert acted(copy, beneath(place), source, place / "copy").lost == ["user.origin"]


@pytest.mark.parametrize("act", [copy, move])
def test_copy_and_move_refuse_to_lose_an_access_control_list(place, elsewhere, act, monkeypatch):
    source = filled(place)
    before = metadata_of_all(source)
    monkeypatch.setattr(os, "setxattr", refusing(ACL))
    assert code(lambda *paths: acted(act, beneath(place, elsewhere), *paths), source, elsewhere / "new") == "metadata"
    assert (metadata_of_all(source), os.listdir(elsewhere)) == (before, [])


@pytest.mark.parametrize("name", ["dir", "dir/inner/file", "dir/link"])
def test_a_move_to_another_file_system_keeps_metadata_and_times(place, elsewhere, name):
    filled(place)
    for path in (place / "dir/inner/file", place / "dir/inner", place / "dir"):
        os.utime(path, ns=(1_000_000_007, 2_000_000_011))
    source = place / name
    before, times = metadata_of_all(source) if not source.is_symlink() else os.readlink(source), times_of_all(source)
    acted(move, beneath(place, elsewhere), source, elsewhere / "new")
    new = elsewhere / "new"
    assert (metadata_of_all(new) if not new.is_symlink() else os.readlink(new), times_of_all(new)) == (before, times)
    assert (os.path.lexists(source), os.listdir(elsewhere)) == (False, ["new"])


def test_a_move_that_would_lose_an_attribute_is_refused(place, elsewhere, monkeypatch):
    source = filled(place)
    before = metadata_of_all(source)
    monkeypatch.setattr(os, "setxattr", refusing("user.origin"))
    with pytest.raises(FilesError, match=r"would lose: user\.origin\. Copy it, then delete it"):
        acted(move, beneath(place, elsewhere), source, elsewhere / "new")
    assert (metadata_of_all(source), os.listdir(elsewhere)) == (before, [])


@pytest.mark.parametrize("change", ["inner/file", "inner/new", "link"])
def test_a_file_changed_during_a_move_stays_at_its_source(place, elsewhere, change):
    source = filled(place)
    copied = iter([elsewhere])

    def changing():
        if all(any(elsewhere.glob(f".mcp-*/{name}")) for name in ("inner/file", "link")) and next(copied, None):
            (source / change).unlink(missing_ok=True)
            (source / change).write_text("theirs")

    files = beneath(place, elsewhere)
    with pytest.raises(FilesError, match="has been changed by another program in the meantime"):
        move(files, files.roots.place(str(source)), files.roots.place(str(elsewhere / "new")), changing)
    assert ((source / change).read_text(), os.listdir(elsewhere)) == ("theirs", [])


@needs_root
def test_a_tree_with_a_mount_does_not_move_across_file_systems(place, elsewhere):
    source = filled(place)
    if subprocess.run(
        ["mount", "-t", "tmpfs", "none", source / "inner"], check=False, capture_output=True
    ).returncode:
        pytest.skip("mounts a file system: run it where that is allowed")
    try:
        refused = code(lambda *paths: acted(move, beneath(place, elsewhere), *paths), source, elsewhere / "new")
        assert (refused, os.listdir(elsewhere)) == ("cross_device", [])
    finally:
        subprocess.run(["umount", source / "inner"], check=True)


@contextmanager
def without_privileges():
    """Runs the block as the user nobody."""
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


def acts_without_privileges(place, elsewhere):
    """Returns the lost metadata or the error code of each act."""
    files, results = beneath(place, elsewhere), {}
    for name, act in {
        "edit": lambda: edit(files, place / "mine")[0].lost,
        "overwrite": lambda: overwrite(files, place / "mine").lost,
        "append": lambda: append(files, place / "mine").lost,
        "copy": lambda: acted(copy, files, place / "mine", place / "copy").lost,
        "move": lambda: acted(move, files, place / "mine", elsewhere / "mine"),
        "copy theirs": lambda: acted(copy, files, place / "theirs", place / "their copy").lost,
        "move theirs": lambda: acted(move, files, place / "theirs", elsewhere / "theirs"),
        "edit theirs": lambda: edit(files, place / "theirs")[0].lost,
        "edit labelled": lambda: edit(files, place / "labelled")[0].lost,
        "copy labelled": lambda: acted(copy, files, place / "labelled", place / "label copy").lost,
        "edit listed": lambda: edit(files, place / "listed")[0].lost,
    }.items():
        try:
            results[name] = act()
        except FilesError as error:
            results[name] = error.code
    return results


@needs_root
def test_without_privileges_lost_metadata_is_reported_or_refused(place, elsewhere):
    for name in ("first", "mine", "theirs", "labelled", "listed"):
        path = place / name
        path.write_text("old\n")
        path.chmod(0o666)
        os.chown(path, NOBODY, NOBODY)
    for name, value in ATTRIBUTES.items():
        os.setxattr(place / "mine", name, value)
    os.chown(place / "theirs", 1001, 1002)
    os.setxattr(place / "labelled", "security.selinux", PRIVILEGED["security.selinux"])
    os.setxattr(place / "listed", ACL, DENIED)
    os.chown(place / "listed", NOBODY, 1002)
    for folder in (place, elsewhere):
        folder.chmod(0o777)
    mine = metadata_of(place / "mine")
    # Modules loaded later could not be read without privileges.
    edit(beneath(place), place / "first")
    with without_privileges():
        results = acts_without_privileges(place, elsewhere)
    # Some kernels let all users label their files.
    label = "security.selinux"
    assert os.getxattr(place / "labelled", label) == PRIVILEGED[label]
    assert results.pop("edit labelled") in ([], "metadata")
    assert results.pop("copy labelled") == [label] * (label not in os.listxattr(place / "label copy"))
    assert results == {
        "edit": [],
        "overwrite": [],
        "append": [],
        "copy": [],
        "move": None,
        "edit listed": "metadata",
        "copy theirs": ["owner", "group"],
        "move theirs": "cross_device",
        "edit theirs": ["owner", "group"],
    }
    assert metadata_of(place / "copy") == metadata_of(elsewhere / "mine") == mine
    assert (place / "listed").read_text() == "old\n"

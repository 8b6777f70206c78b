"""Local and remote paths, from mount tables like those of the kernel."""

from pathlib import Path

import pytest

from servers.common.files.mounts import MOUNTINFO, Mounts
from shared.program.files.entries import Place

LOCAL = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw"
PROC = "22 27 0:21 / /proc rw - proc proc rw"


def line(point, kind, optional=""):
    return f"31 27 0:40 / {point} rw,nosuid {optional}- {kind} source rw"


class Table:
    """A table of mounts, and the mounts of one root read from it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def mounts(self, *lines, root="/srv/files"):
        self.file.write_text("\n".join([LOCAL, PROC, *lines]) + "\n")
        return Mounts([Path(root)], self.file)


@pytest.fixture
def table(tmp_path):
    return Table(tmp_path / "mountinfo")


def at(*parts):
    return Place(0, parts, "/".join(parts))


def test_files_on_a_disk_are_local(table):
    mounts = table.mounts()
    assert mounts.is_local(at("a", "b"))
    assert mounts.is_local(at())


def test_network_and_unknown_file_systems_are_not_local(table):
    remote = ["nfs4", "cifs", "fuse.sshfs", "fuseblk", "9p", "autofs", "virtiofs", "unheard-of"]
    kinds = {**dict.fromkeys(remote, False), **dict.fromkeys(["xfs", "btrfs", "tmpfs", "overlay"], True)}
    for optional in ("", "shared:5 master:1 "):
        assert {kind: table.mounts(line("/srv", kind, optional)).is_local(at("a")) for kind in kinds} == kinds


def test_only_paths_below_a_remote_mount_are_remote(table):
    mounts = table.mounts(line("/srv/files/far/off", "nfs"))
    assert [mounts.is_local(at(*way)) for way in (("far",), ("far", "x"), ("far", "offer"))] == [True] * 3
    assert [mounts.is_local(at(*way)) for way in (("far", "off"), ("far", "off", "x"))] == [False] * 2


def test_a_local_mount_below_a_remote_one_is_remote(table):
    mounts = table.mounts(line("/srv/files/far", "nfs"), line("/srv/files/far/disk", "ext4"))
    assert not mounts.is_local(at("far", "disk", "x"))


def test_the_last_of_several_mounts_at_one_point_applies(table):
    assert table.mounts(line("/srv", "nfs"), line("/srv", "ext4")).is_local(at("a"))
    assert not table.mounts(line("/srv", "ext4"), line("/srv", "nfs")).is_local(at("a"))


def test_mounts_beside_the_root_are_ignored(table):
    mounts = table.mounts(line("/srv/files2", "nfs"), line("/srv/file", "nfs"), line("/mnt", "nfs"))
    assert mounts.is_local(at("a"))


def test_escaped_names_of_mount_points_are_decoded(table):
    mounts = table.mounts(line(r"/srv/files/a\040b\134é", "nfs"))
    assert not mounts.is_local(at("a b\\é", "x"))
    assert mounts.is_local(at("a", "x"))


def test_mounts_below_the_file_system_root_are_found(table):
    mounts = table.mounts(root="/")
    assert mounts.is_local(at("etc", "hosts"))
    assert not mounts.is_local(at("proc", "1", "status"))


def test_without_a_table_nothing_is_local(tmp_path):
    assert not Mounts([tmp_path], tmp_path / "none").is_local(at("a"))


def test_with_an_invalid_table_nothing_is_local(table):
    for text in ("", "\n", "one two three\n", "1 - \n", "27 1 254:0 / / rw,relatime - \n"):
        table.file.write_text(text)
        assert not Mounts([Path("/srv/files")], table.file).is_local(at("a")), text


def test_after_close_nothing_is_local(table, no_leak):
    mounts = table.mounts()
    mounts.close()
    mounts.close()
    assert not mounts.is_local(at("a"))


class Changed:
    """A poll that reports a change, as the kernel does after a mount."""

    def poll(self, timeout):
        return [(0, 0)]


def test_a_change_of_the_table_is_noticed(table):
    mounts = table.mounts()
    assert mounts.is_local(at("far", "x"))
    with table.file.open("a") as file:
        file.write(line("/srv/files/far", "nfs") + "\n")
    assert mounts.is_local(at("far", "x"))
    mounts._changes = Changed()  # a test can not mount anything
    assert not mounts.is_local(at("far", "x"))


def test_the_table_of_this_machine_is_read():
    mounts = Mounts([Path("/"), Path("/proc")])
    if not MOUNTINFO.exists():
        pytest.skip("no Linux")
    assert not mounts.is_local(Place(0, ("proc", "self"), ""))
    assert not mounts.is_local(Place(1, ("self",), ""))
    mounts.close()

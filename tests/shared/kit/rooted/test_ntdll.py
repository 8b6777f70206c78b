"""What the native calls of Windows give and take as bytes, as far as that can be told without Windows."""

import errno
import stat
import struct

import pytest

from shared.kit.rooted.ntdll import error_of, link_target, listed, native_path, renaming
from shared.kit.rooted.windows import Listed, SharingViolation

DIRECTORY, REPARSE, PLAIN = 0x10, 0x400, 0x20
SYMLINK, JUNCTION, DEDUPLICATED, CLOUD, OF_LINUX = 0xA000000C, 0xA0000003, 0x80000013, 0x9000601A, 0xA000001D


def entry(name, attributes, tag=0, last=False):
    encoded = name.encode("utf-16-le", "surrogatepass")
    size = 68 + len(encoded)
    size += -size % 8
    head = struct.pack("<II4qqqIII", 0 if last else size, 0, 1, 2, 3, 4, 5, 4096, attributes, len(encoded), tag)
    return (head + encoded).ljust(size, b"\0")


def test_a_listing_has_names_and_kinds():
    data = b"".join(
        [
            entry(".", DIRECTORY),
            entry("..", DIRECTORY),
            entry("dir", DIRECTORY),
            entry("a file \U0001f600\ud800", PLAIN, tag=12),
            entry("link", PLAIN | REPARSE, SYMLINK),
            entry("placeholder", PLAIN | REPARSE, CLOUD),
            entry("in the cloud", DIRECTORY | REPARSE, CLOUD),
            entry("link of Linux", PLAIN | REPARSE, OF_LINUX),
            entry("junction", DIRECTORY | REPARSE, JUNCTION, last=True),
            entry("of an older listing", PLAIN, last=True),
        ]
    )
    assert list(listed(data)) == [
        Listed("dir", stat.S_IFDIR),
        Listed("a file \U0001f600\ud800", stat.S_IFREG),
        Listed("link", stat.S_IFLNK),
        Listed("placeholder", stat.S_IFREG),
        Listed("in the cloud", stat.S_IFDIR),
        Listed("link of Linux", stat.S_IFLNK),
        Listed("junction", stat.S_IFLNK),
    ]


def test_a_listing_of_nothing():
    assert list(listed(entry(".", DIRECTORY, last=True))) == []


def reparse(tag, target, shown="shown", relative=False):
    target, shown = target.encode("utf-16-le"), shown.encode("utf-16-le")
    # What is shown comes first: offsets count.
    head = struct.pack("<HHHH", len(shown), len(target), 0, len(shown))
    if tag == SYMLINK:
        head += struct.pack("<I", relative)
    data = head + shown + target
    return struct.pack("<IHH", tag, len(data), 0) + data


def test_where_a_link_leads():
    assert link_target(reparse(SYMLINK, r"..\a\b", relative=True)) == r"..\a\b"
    assert link_target(reparse(SYMLINK, r"\??\C:\a\b")) == r"C:\a\b"
    assert link_target(reparse(JUNCTION, "\\??\\C:\\a\\")) == "C:\\a\\"
    assert link_target(reparse(SYMLINK, r"\??\UNC\server\share\a")) == r"\\server\share\a"


def test_what_leads_to_no_path_is_not_followed():
    for data in (
        reparse(JUNCTION, "\\??\\Volume{00000000-0000-0000-0000-000000000000}\\"),
        *(reparse(SYMLINK, target, relative=True) for target in (r"\a", r"C:a", r"a\nul")),
        reparse(SYMLINK, r"\??\GLOBALROOT\Device\x"),
        reparse(DEDUPLICATED, r"\??\C:\a"),
    ):
        with pytest.raises(OSError, match="Invalid") as caught:
            link_target(data)
        assert caught.value.errno == errno.EINVAL


def test_a_path_as_the_kernel_has_it():
    assert native_path(r"C:\a b") == r"\??\C:\a b"
    assert native_path(r"\\server\share") == r"\??\UNC\server\share"


def test_a_new_name_beside_the_handle_of_its_directory():
    assert renaming(3, 0x1234, "new.txt") == struct.pack("<I4xQI", 3, 0x1234, 14) + "new.txt".encode("utf-16-le")
    assert len(renaming(0, 1, "a")) == 24


def test_failures_have_the_names_of_posix():
    kinds = {
        -0x3FFFFFCC: FileNotFoundError,
        0xC0000035: FileExistsError,
        0xC0000022: PermissionError,
        0xC0000043: SharingViolation,
        0xC0000056: SharingViolation,
        0xC0000103: NotADirectoryError,
        0xC00000BA: IsADirectoryError,
    }
    assert {status: type(error_of(status)) for status in kinds} == kinds


def test_what_others_cause_is_no_failure_of_input_and_output():
    numbers = {
        0xC0000044: errno.ENOSPC,
        0xC0000054: errno.EACCES,
        0xC00000BE: errno.ENOENT,
        0xC00000CC: errno.ENOENT,
        0xC000011F: errno.EMFILE,
        0xC0000123: errno.ENOENT,
        0xC0000243: errno.EACCES,
        0xC0000265: errno.EMLINK,
        0xC0000001: errno.EIO,  # which is what any other one is
    }
    assert {status: error_of(status).errno for status in numbers} == numbers


def test_who_may_not_take_a_name_may_be_waiting_for_others():
    for status in (0xC0000022, 0xC0000121):
        assert type(error_of(status)) is PermissionError
        assert type(error_of(status, takes_name=True)) is SharingViolation

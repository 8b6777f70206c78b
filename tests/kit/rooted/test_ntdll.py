"""What the native calls of Windows give and take as bytes, as far as that can be told without Windows."""

import errno
import stat
import struct

import pytest

from shared.kit.rooted.ntdll import error_of, link_target, listed, native_path, renaming
from shared.kit.rooted.windows import Listed, SharingViolation

DIRECTORY, REPARSE, PLAIN = 0x10, 0x400, 0x20
SYMLINK, JUNCTION, DEDUPLICATED = 0xA000000C, 0xA0000003, 0x80000013


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
            entry("junction", DIRECTORY | REPARSE, JUNCTION, last=True),
            entry("of an older listing", PLAIN, last=True),
        ]
    )
    assert list(listed(data)) == [
        Listed("dir", stat.S_IFDIR),
        Listed("a file \U0001f600\ud800", stat.S_IFREG),
        Listed("link", stat.S_IFLNK),
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


@pytest.mark.parametrize(
    ("data", "target"),
    [
        (reparse(SYMLINK, r"..\a\b", relative=True), r"..\a\b"),
        (reparse(SYMLINK, r"\??\C:\a\b"), r"C:\a\b"),
        (reparse(JUNCTION, "\\??\\C:\\a\\"), "C:\\a\\"),
        (reparse(SYMLINK, r"\??\UNC\server\share\a"), r"\\server\share\a"),
    ],
)
def test_where_a_link_leads(data, target):
    assert link_target(data) == target


@pytest.mark.parametrize(
    "data",
    [
        reparse(JUNCTION, "\\??\\Volume{00000000-0000-0000-0000-000000000000}\\"),
        reparse(SYMLINK, r"\a", relative=True),
        reparse(SYMLINK, r"C:a", relative=True),
        reparse(SYMLINK, r"a\nul", relative=True),
        reparse(SYMLINK, r"\??\GLOBALROOT\Device\x"),
        reparse(DEDUPLICATED, r"\??\C:\a"),
    ],
)
def test_what_leads_to_no_path_is_not_followed(data):
    with pytest.raises(OSError, match="Invalid") as caught:
        link_target(data)
    assert caught.value.errno == errno.EINVAL


def test_a_path_as_the_kernel_has_it():
    assert native_path(r"C:\a b") == r"\??\C:\a b"
    assert native_path(r"\\server\share") == r"\??\UNC\server\share"


def test_a_new_name_beside_the_handle_of_its_directory():
    assert renaming(3, 0x1234, "new.txt") == struct.pack("<I4xQI", 3, 0x1234, 14) + "new.txt".encode("utf-16-le")
    assert len(renaming(0, 1, "a")) == 24


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (-0x3FFFFFCC, FileNotFoundError),
        (0xC0000035, FileExistsError),
        (0xC0000022, PermissionError),
        (0xC0000043, SharingViolation),
        (0xC0000056, SharingViolation),
        (0xC0000103, NotADirectoryError),
        (0xC00000BA, IsADirectoryError),
    ],
)
def test_failures_have_the_names_of_posix(status, kind):
    assert type(error_of(status)) is kind


def test_an_unknown_failure_is_one_of_input_and_output():
    assert error_of(0xC0000001).errno == errno.EIO

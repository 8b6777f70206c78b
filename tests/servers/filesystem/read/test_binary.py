"""Files as bytes, whole and in parts, and their media types."""

import pytest

from servers.filesystem.errors import FilesError
from servers.filesystem.read.binary import read_bytes
from servers.filesystem.read.media_types import media_type_of
from shared.kit.rooted.entries import etag_of


def test_bytes_and_their_type(files, root, at):
    (root / "a.png").write_bytes(b"\x89PNG")
    found = read_bytes(files, at("a.png"), 4)
    assert (found.data, found.size, found.mime) == (b"\x89PNG", 4, "image/png")
    assert found.etag == etag_of((root / "a.png").stat())


def test_too_many_bytes(files, root, at):
    (root / "a.png").write_bytes(b"12345")
    with pytest.raises(FilesError, match=r"has 5 bytes; the limit is 4") as caught:
        read_bytes(files, at("a.png"), 4)
    assert caught.value.code == "too_large"


@pytest.mark.parametrize(
    ("offset", "length", "data"),
    [(0, 2, b"01"), (3, None, b"3456"), (None, 3, b"012"), (8, 9, b"89"), (20, 1, b""), (0, 9, b"0123"), (1, 0, b"")],
)
def test_a_part_of_the_bytes_is_as_long_as_the_budget_at_most(files, root, at, offset, length, data):
    (root / "a").write_bytes(b"0123456789")
    found = read_bytes(files, at("a"), 4, offset, length)
    assert (found.data, found.size) == (data, 10)


@pytest.mark.parametrize(
    ("name", "mime"), [("a.webp", "image/webp"), ("a", "application/octet-stream"), ("A.JPG", "image/jpeg")]
)
def test_types_by_name(name, mime):
    assert media_type_of(name) == mime

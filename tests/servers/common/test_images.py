"""Types of images by their first bytes, and damaged images."""

from zlib import crc32

import pytest

from servers.common.images import image_type, is_whole


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x89PNG\r\n\x1a\n\0", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"<svg/>", None),
        (b"BM\0\0", None),
        (b"", None),
    ],
)
def test_an_image_type_follows_from_the_first_bytes(data: bytes, expected: str | None) -> None:
    assert image_type(data) == expected


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG with these chunks."""
    parts = [len(data).to_bytes(4) + kind + data + crc32(kind + data).to_bytes(4) for kind, data in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


PNG = png((b"IHDR", bytes(13)), (b"IDAT", b"pixels"), (b"IEND", b""))
THUMBNAIL = b"\xff\xd8\xff\xda\0\2\xff\xd9"
JPEG = b"\xff\xd8\xff\xe1" + (2 + len(THUMBNAIL)).to_bytes(2) + THUMBNAIL + b"\xff\xff\xda\0\2pixels\xff\xd9"
GIF_HEAD = b"GIF89a" + bytes(4) + b"\x80\0\0" + b"color;" + b"!\xf9\4\0\0\0\0\0"
GIF = GIF_HEAD + b"," + bytes(8) + b"\x80" + b"\0;lors" + b"\2" + b"\6pi\0;ls" + b"\0\0;"
WEBP = b"RIFF\x08\0\0\0WEBPVP8 "


@pytest.mark.parametrize("image", [PNG, JPEG, GIF, WEBP])
def test_an_image_is_complete_with_its_end_marker_and_trailing_bytes(image: bytes) -> None:
    assert is_whole(image)
    assert is_whole(image + b"\0more")
    assert not is_whole(image[:-1])
    assert not is_whole(image[:14])


@pytest.mark.parametrize(
    "image",
    [
        PNG.replace(b"pixels", b"pixelz"),
        png((b"IHDR", bytes(13)), (b"IEND", b"")),
        png(*[(b"tEXt", b"")] * 10_001),
        b"\xff\xd8\xff\xe1\0\0" + b"\xff" * 20_000,
        GIF.removesuffix(b"ls\0\0;"),
        GIF_HEAD + b"pixels;",
    ],
)
def test_a_damaged_image_is_not_complete(image: bytes) -> None:
    assert not is_whole(image)

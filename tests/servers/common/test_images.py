"""Types of images by their first bytes, and images that models refuse."""

from zlib import crc32

import pytest

from servers.common.images import fault_of, image_type


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
    assert fault_of(image) is None
    assert fault_of(image + b"\0more") is None
    assert fault_of(image[:-1]) == fault_of(image[:14]) == "damaged or incomplete image"


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
    assert fault_of(image) == "damaged or incomplete image"


def sized_png(width: int, height: int) -> bytes:
    return png((b"IHDR", width.to_bytes(4) + height.to_bytes(4) + bytes(5)), (b"IDAT", b""), (b"IEND", b""))


def test_models_refuse_an_image_of_more_than_8000_pixels_a_side() -> None:
    assert fault_of(sized_png(8_000, 8_000)) is None
    assert fault_of(sized_png(1_280, 12_000)) == "image of 1,280 x 12,000 pixels, but models accept at most 8,000"

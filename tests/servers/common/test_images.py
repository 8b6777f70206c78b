"""Images that models see, by their first bytes."""

import pytest

from servers.common.images import image_type


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
def test_an_image_is_known_by_its_first_bytes(data: bytes, expected: str | None) -> None:
    assert image_type(data) == expected

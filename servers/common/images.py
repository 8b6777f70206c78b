"""Image types that models accept, detected by first bytes: hosts and models refuse an image whose declared type is
wrong.
"""

_SIGNS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def image_type(data: bytes) -> str | None:
    """Return the media type of a PNG, JPEG, GIF or WebP; None for other data (WHATWG MIME Sniffing, section 6.1)."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for sign, media_type in _SIGNS if data.startswith(sign)), None)

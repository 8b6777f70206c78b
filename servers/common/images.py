"""Detects the type of an image that models accept by its first bytes, and whether it is complete. Hosts and models
refuse an image whose declared type is wrong, or that is damaged, and in some hosts that ends the conversation.
"""

from zlib import crc32

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_MAX_PARTS = 10_000
"""Maximum number of chunks of a PNG, segments of a JPEG or blocks of a GIF; an image with more counts as damaged."""


def image_type(data: bytes) -> str | None:
    """Return the media type of a PNG, JPEG, GIF or WebP; None for other data (WHATWG MIME Sniffing, section 6.1)."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for signature, media_type in _SIGNATURES if data.startswith(signature)), None)


def is_whole(data: bytes) -> bool:
    """Return False if an image of one of these types is cut off, or is a PNG with a wrong checksum. Other damage is
    not detected, since pixels are not decoded."""
    match image_type(data):
        case "image/png":
            return _is_whole_png(data)
        case "image/jpeg":
            return _is_whole_jpeg(data)
        case "image/webp":
            return int.from_bytes(data[4:8], "little") + 8 <= len(data)
        case _:
            return _is_whole_gif(data)


def _is_whole_png(data: bytes) -> bool:
    position, has_pixels = 8, False
    for _ in range(_MAX_PARTS):
        # A chunk is its length, its type, its data and its checksum (PNG, section 5.3).
        end = position + 12 + int.from_bytes(data[position : position + 4])
        kind = data[position + 4 : position + 8]
        if end > len(data) or crc32(memoryview(data)[position + 4 : end - 4]) != int.from_bytes(data[end - 4 : end]):
            return False
        if kind == b"IEND":
            return has_pixels
        has_pixels = has_pixels or kind == b"IDAT"
        position = end
    return False


def _is_whole_jpeg(data: bytes) -> bool:
    position = 2
    for _ in range(_MAX_PARTS):
        # A segment is a marker, a length and contents, which are skipped, as they may be a smaller image.
        marker = data[position : position + 2]
        if marker[:1] != b"\xff" or len(marker) < 2:
            return False
        if marker == b"\xff\xda":
            return data.rfind(b"\xff\xd9") > position
        position += 1 if marker == b"\xff\xff" else 2 + int.from_bytes(data[position + 2 : position + 4])
    return False


def _is_whole_gif(data: bytes) -> bool:
    position = 13 + _palette_bytes(data[10:11])
    for _ in range(_MAX_PARTS):
        kind = data[position : position + 1]
        if kind == b";":
            return True
        if kind == b",":
            # Ten bytes of descriptor, perhaps colors, and the size of the codes (GIF89a, sections 20 to 22).
            position += 11 + _palette_bytes(data[position + 9 : position + 10])
        elif kind == b"!":
            position += 2
        elif kind != b"\0":  # Some encoders write one empty block too many.
            return False
        # The data follow in blocks of at most 255 bytes, up to an empty block.
        while size := int.from_bytes(data[position : position + 1]):
            position += 1 + size
        position += 1
    return False


def _palette_bytes(flags: bytes) -> int:
    """Return the size in bytes of the color table after these flags; 0 if there is none."""
    return 6 << (flags[0] & 7) if flags and flags[0] & 0x80 else 0

"""Detects the type of an image by its first bytes, its size, and whether it is complete. Hosts and models refuse an
image whose declared type is wrong, or that is damaged or too large, and in some hosts that ends the conversation.
"""

import struct
from zlib import crc32

MAX_PIXELS = 8_000
"""Maximum width and height in pixels that models accept."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_MAX_PARTS = 10_000
"""Maximum number of chunks of a PNG, segments of a JPEG or blocks of a GIF; an image with more counts as damaged."""
# JPEG markers that begin a frame, which contains its size.
_FRAME_MARKERS = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


def image_type(data: bytes) -> str | None:
    """Return the media type of a PNG, JPEG, GIF or WebP; None for other data (WHATWG MIME Sniffing, section 6.1)."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for signature, media_type in _SIGNATURES if data.startswith(signature)), None)


def fault_of(data: bytes) -> str | None:
    """Return why models refuse an image, for a note; None if they accept it. Its type must be one of `image_type`."""
    if not _is_whole(data):
        return "damaged or incomplete image"
    width, height = find_size(data) or (0, 0)
    if max(width, height) > MAX_PIXELS:
        return f"image of {width:,} x {height:,} pixels, but models accept at most {MAX_PIXELS:,}"
    return None


def _is_whole(data: bytes) -> bool:
    """Return False if an image is cut off, or is a PNG with a wrong checksum. Other damage is not detected, since
    pixels are not decoded."""
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
        # A segment is a marker, a length and contents. Skip the contents, since they may contain a smaller image.
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
            # Skip ten bytes of descriptor, the colors if any, and the size of the codes (GIF89a, sections 20 to 22).
            position += 11 + _palette_bytes(data[position + 9 : position + 10])
        elif kind == b"!":
            position += 2
        elif kind != b"\0":  # Some encoders write one empty block too many.
            return False
        # Then come blocks of data of at most 255 bytes each, up to an empty block.
        while size := int.from_bytes(data[position : position + 1]):
            position += 1 + size
        position += 1
    return False


def _palette_bytes(flags: bytes) -> int:
    """Return the size in bytes of the color table after these flags; 0 if there is none."""
    return 6 << (flags[0] & 7) if flags and flags[0] & 0x80 else 0


def find_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels, if the image declares them."""
    try:
        match image_type(data):
            case "image/png":
                return _unpack_two(">II", data, 16)
            case "image/gif":
                return _unpack_two("<HH", data, 6)
            case "image/webp":
                return _find_webp_size(data)
            case _:
                return _find_jpeg_size(data)
    except (struct.error, IndexError):  # the data ends before the size
        return None


def _unpack_two(form: str, data: bytes, position: int) -> tuple[int, int]:
    first, second = struct.unpack_from(form, data, position)
    return first, second


def _find_webp_size(data: bytes) -> tuple[int, int] | None:
    form = data[12:16]
    if form == b"VP8X":
        width, width_high, height, height_high = struct.unpack_from("<HBHB", data, 24)
        return 1 + (width | width_high << 16), 1 + (height | height_high << 16)
    if form == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = _unpack_two("<HH", data, 26)
    return (width & 0x3FFF, height & 0x3FFF) if form == b"VP8 " else None


def _find_jpeg_size(data: bytes) -> tuple[int, int] | None:
    position = 2
    for _ in range(_MAX_PARTS):
        if data[position] != 0xFF:
            return None
        marker = data[position + 1]
        if marker in _FRAME_MARKERS:
            height, width = _unpack_two(">HH", data, position + 5)
            return width, height
        # 0xFF may be repeated before a marker.
        position += 1 if marker == 0xFF else 2 + int.from_bytes(data[position + 2 : position + 4], "big")
    return None

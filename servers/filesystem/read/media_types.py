"""Media types of files by their names, from a package, since Python's own table lacks most types of source code."""

from functools import lru_cache

BINARY = "application/octet-stream"
TEXT = "text/plain"
"""The media types of bytes and of text that have no more specific type."""


@lru_cache(1_024)
def media_type_of(name: str) -> str | None:
    """Return the media type that a name suggests, or None. Names repeat, so the results are cached."""
    # Slow to import, and only resource lists and file descriptions need it.
    from content_types import get_content_type

    # Without its first character, which is not part of an extension even if it is a dot.
    _, dot, extension = name.rpartition("/")[2][1:].rpartition(".")
    media_type: str | None = get_content_type(extension, fallback=None) if dot and extension else None
    return media_type

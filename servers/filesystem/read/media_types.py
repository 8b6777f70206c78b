"""Media types of files, by their names: Python's own table knows few types of source texts."""

from functools import lru_cache

BINARY = "application/octet-stream"
TEXT = "text/plain"
"""The media types of bytes and of text without a more specific one."""


@lru_cache(1_024)
def media_type_of(name: str) -> str | None:
    """Return the media type that a name suggests, or None. Names repeat, so the results are cached."""
    # Slow to load, and only lists of resources and descriptions of files need it.
    from content_types import get_content_type

    suffix = name.rpartition("/")[2][1:].rpartition(".")
    media_type: str | None = get_content_type(suffix[2], fallback=None) if suffix[1] and suffix[2] else None
    return media_type

"""Media types of files, by their names."""

import mimetypes
from functools import cache, lru_cache

_MORE_TYPES = {".webp": "image/webp", ".avif": "image/avif", ".md": "text/markdown"}


@lru_cache(1_024)
def media_type_of(name: str) -> str:
    """The media type a file name suggests. Names come again, so what they suggest is remembered."""
    return _types().guess_type(name, strict=False)[0] or "application/octet-stream"


@cache
def _types() -> mimetypes.MimeTypes:
    # Only the built-in table: the answer must not depend on the machine. Python reads the machine's nevertheless, so
    # this waits until somebody asks.
    types = mimetypes.MimeTypes(filenames=())
    for suffix, type_ in _MORE_TYPES.items():
        types.add_type(type_, suffix)
    return types

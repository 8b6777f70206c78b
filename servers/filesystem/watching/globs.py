"""Globs as URIs: `file:///root/src/**/*.py` stands for what it matches.

A `*` that is written as such makes a URI a glob; one in the name of a file is written %2A. The glob begins with the
component the first `*` is in, and from there on is percent-decoded and understood as `search_files` does. What stands
before it is an ordinary directory.
"""

import os
from urllib.parse import unquote_to_bytes

from servers.filesystem.errors import FilesError


def split_glob(uri: str) -> tuple[str, str] | None:
    """The URI of the directory and the glob below it, or None where `uri` is no glob. Raises FilesError."""
    star = uri.find("*")
    if star < 0:
        return None
    start = uri.rfind("/", 0, star) + 1
    try:
        pattern = os.fsdecode(unquote_to_bytes(uri[start:]))
    except UnicodeError:
        raise FilesError("bad_pattern", uri, "the URI holds characters no file name can have") from None
    # With a slash in it a pattern begins here; without one it would stand for names at any depth.
    return uri[:start], f"./{pattern}"

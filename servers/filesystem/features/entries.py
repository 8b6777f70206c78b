"""Directory entries as resources, with metadata that hosts show, and hints such as a priority.

Hosts may use the hints to choose the context for a model, so few entries have any but a modification time. All other
hints are derived from the name, without reading the file.
"""

from datetime import UTC, datetime
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from shared import Annotations, Resource
from shared.text import display_name

from ..read.media_types import media_type_of
from ..watch.tree import IGNORED

if TYPE_CHECKING:
    from ..search.listing import ListedEntry

_DIRECTORY = "inode/directory"
_README_PRIORITY, _HIDDEN_FILE_PRIORITY = 0.8, 0.2
"""Priorities of README files, and of hidden or generated files."""
_GENERATED_NAMES = IGNORED | {"package-lock.json", "pnpm-lock.yaml"}
_GENERATED_ENDINGS = (".lock", ".map", ".pyc")
"""Names, and endings of names, of files and directories that tools generate and people don't read."""
_USER_MEDIA_TYPES = {
    "application/zip",
    "application/gzip",
    "application/x-tar",
    "video/mp4",
    "video/webm",
    "video/quicktime",
    "video/mpeg",
}
"""Media types that models can't read, so that the files are only meant for the user."""


def resource_of(entry: "ListedEntry") -> Resource:
    """Return a directory entry as a resource."""
    mime_type = _DIRECTORY if entry.kind == "directory" else media_type_of(entry.name)
    modified = None if entry.modified is None else format_time(entry.modified)
    hints: dict[str, Any] = {} if entry.modified is None else {"last_modified": modified}
    name = entry.name
    if name[0] == "." or name in _GENERATED_NAMES or name.endswith(_GENERATED_ENDINGS):
        hints["priority"] = _HIDDEN_FILE_PRIORITY
    elif name[:6].lower() == "readme":
        hints["priority"] = _README_PRIORITY
    if mime_type in _USER_MEDIA_TYPES:
        hints["audience"] = ["user"]
    return Resource(
        uri=entry.uri,
        name=entry.name,
        size=entry.size,
        mime_type=mime_type,
        annotations=Annotations(**hints) if hints else None,
    )


def root_resource_of(uri: str, path: PurePath, modified: float) -> Resource:
    """Return an allowed directory as a resource, with its path as its name and the last component as its title."""
    annotations = Annotations(last_modified=format_time(modified))
    title = display_name(path.name) or None
    return Resource(uri=uri, name=display_name(str(path)), title=title, mime_type=_DIRECTORY, annotations=annotations)


@lru_cache(1_024)  # many files have the same modification time
def format_time(seconds: float) -> str | None:
    """Return a time, given in seconds since 1970, in ISO 8601 to the second; None if it can't be represented."""
    try:
        # Three times as fast as `strftime`.
        return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}Z"
    except (ValueError, OverflowError, OSError):
        return None  # a file system can store times that `datetime` can't represent

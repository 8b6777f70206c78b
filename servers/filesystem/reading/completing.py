"""Going on with a path that somebody types into a `file:` URI."""

import os
from urllib.parse import unquote_to_bytes

from servers.filesystem.errors import FilesError
from shared.kit.rooted.entries import Place, kind_of, scanned
from shared.kit.rooted.files import RootedFiles

_START = "file:///"


def completed(beneath: RootedFiles, typed: str) -> list[str]:
    """The paths, as they follow `file:///`, that begin with what was typed: allowed directories, then the entries of
    the directory typed so far. A directory ends in a slash. What is outside or not there gives nothing."""
    typed = typed.lstrip("/")
    begun = unquote_to_bytes(typed)
    roots = [beneath.roots.uri(Place(index, (), "")) for index in range(len(beneath.roots.paths))]
    paths = [f"{uri.removeprefix(_START)}/" for uri in roots]
    found = [path for path in paths if unquote_to_bytes(path).startswith(begun)]
    parent, slash, name = typed.rpartition("/")
    if slash:
        found += _entries(beneath, f"{_START}{parent}", unquote_to_bytes(name))
    return found


def _entries(beneath: RootedFiles, parent: str, begun: bytes) -> list[str]:
    try:
        place = beneath.roots.place(parent)
        with beneath.open_directory(place) as directory:
            entries = [entry for entry in scanned(directory) if os.fsencode(entry.name).startswith(begun)]
            found = [(place.child(entry.name), "/" if kind_of(entry) == "directory" else "") for entry in entries]
    except FilesError:
        return []
    roots = beneath.roots
    return [f"{roots.uri(one).removeprefix(_START)}{end}" for one, end in found if not roots.denies(one)]

"""Suggestions for an argument that somebody types."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from servers.prompts.format.definitions import Argument
from servers.prompts.library.folder import Folder

__all__ = ["Completion", "completed"]

_MOST = 100


class Completion(NamedTuple):
    """The best suggestions."""

    values: list[str]
    """At most 100, best first."""
    total: int


def completed(argument: Argument, typed: str, folders: Sequence[Folder] = ()) -> Completion:
    """What the argument could be, after what is typed of it: its values, its examples, and the files of `folders`.

    A path begins at a folder; that of a directory ends in a slash. Files are looked for where the argument is one.
    """
    if argument.type == "file":
        found = [*_ranked(argument.examples, typed), *_paths(folders, typed)]
    elif argument.type == "boolean":
        found = _ranked(("true", "false"), typed)
    else:
        found = _ranked((*argument.enum, *argument.examples), typed)
    found = list(dict.fromkeys(found))
    return Completion(found[:_MOST], len(found))


def _ranked(values: Iterable[str], typed: str) -> list[str]:
    """Those that begin with it, in the order as written, then those that have it within."""
    begun, known = typed.casefold(), list(values)
    first = [one for one in known if one.casefold().startswith(begun)]
    return first + [one for one in known if begun in one.casefold() and one not in first]


def _paths(folders: Sequence[Folder], typed: str) -> list[str]:
    above, slash, begun = typed.rpartition("/")
    if slash and not above:
        return []
    found = []
    for folder in folders:
        for entry in folder.children(above):
            name = entry.path.rpartition("/")[2]
            # What is hidden is suggested to those who ask for it.
            wanted = name.startswith(begun) and (begun or not name.startswith("."))
            if entry.kind in ("file", "directory") and wanted and name.isprintable():
                found.append(entry.path + ("/" if entry.kind == "directory" else ""))
    return sorted(found)

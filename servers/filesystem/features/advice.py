"""Adds advice for the client to an error. The advice names only tools that this server offers."""

import os
import re
from collections.abc import Set
from contextlib import suppress
from urllib.parse import unquote

from shared.program.files.entries import Place

from ..errors import FilesError
from ..files import Files
from ..search import look_alikes

_WORD = re.compile(r"\w+")
_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/]")
_MISSING_PARENT = "its parent directory does not exist"
_ADVICE = {
    ("not_a_file", "is a directory"): "Use list_directory.",
    ("read_only", "is in a read-only directory"): ("The operator can allow it with --allow-write, or --root DIR:rw."),
}


def add_advice(files: Files, error: FilesError, creates_entry: bool = False) -> FilesError:
    """Return the error with advice. With `creates_entry`, the advice may be to create the parent directory first.
    Blocks, since it looks for similar names on the disk."""
    reason, suggestion = error.reason, error.suggestion or _ADVICE.get((error.code, error.reason), "")
    if error.code == "not_found":
        place = _place(files, error.path)
        if place is not None and not files.rooted.is_reachable(place.root_index):
            return FilesError(
                error.code, error.path, "is in an allowed directory that can't be reached at the moment"
            )
        similar = _suggest_respelling(files, error.path, creates_entry and reason == _MISSING_PARENT)
        if place is not None and not similar:
            similar = look_alikes.suggest_path(files.rooted, place)
        creation = "Create it with create_directory first." if creates_entry and reason == _MISSING_PARENT else ""
        suggestion = " ".join(filter(None, (similar, _omit_unavailable(creation, files.not_offered)))) or suggestion
    return FilesError(error.code, error.path, reason, _omit_unavailable(suggestion, files.not_offered))


def _suggest_respelling(files: Files, path: str, is_new: bool) -> str:
    """Return a suggestion for a path with Windows separators, with percent escapes although it is not a URI, in
    quotes, without its first slash, or after the name of the directory that relative paths begin in. If the entry
    `is_new`, only its parent has to exist."""
    roots = files.rooted.roots.paths
    unprefixed = path.removeprefix(f"{roots[0].name}/") if len(roots) == 1 else path
    for respelled in (path.replace("\\", "/"), unquote(path), path.strip("\"'`"), f"/{path}", unprefixed):
        place = None if respelled == path or path.startswith("file:") else _place(files, respelled)
        with suppress(FilesError):
            if place and files.rooted.stat(place._replace(parts=place.parts[:-1]) if is_new else place):
                return f"Did you mean {files.uri(place)}?"
    if os.name != "nt" and _WINDOWS_PATH.match(path):
        return "This server does not run on Windows; list_allowed_directories lists its directories."
    return ""


def _omit_unavailable(suggestion: str, not_offered: Set[str]) -> str:
    """Return the suggestion, or "" if it names a tool that is not offered."""
    return "" if not_offered & set(_WORD.findall(suggestion)) else suggestion


def _place(files: Files, path_or_uri: str) -> Place | None:
    with suppress(FilesError):
        return files.place(path_or_uri) if path_or_uri else None
    return None

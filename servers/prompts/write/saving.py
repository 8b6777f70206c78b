"""Saves and deletes prompts for clients.

A prompt is saved only if it is valid and lint finds no problem in it. A draft stays in `_drafts`, which is not
served, until a person moves it into the library.
"""

from typing import NamedTuple

from ..errors import PromptError
from ..format.forms import SKILL, parse_file
from ..library.folder import Folder
from ..library.libraries import STARTER, Libraries
from ..library.library import Library
from ..library.lint import find_objections, lint_file
from .files import Check, check_file, delete, make_etag, put

_DRAFTS = "_drafts"


class SaveResult(NamedTuple):
    """The result of saving a prompt."""

    path: str
    """The path of the file in the library."""
    etag: str
    created: bool
    """False if a file was replaced."""


def save_prompt(
    libraries: Libraries, name: str, text: str, draft: bool = False, if_match: str | None = None
) -> SaveResult:
    """Write the file of a prompt, front matter and body, atomically. Blocks.

    The file is in the first library, or if `draft`, in its folder `_drafts`. An existing file is only replaced if
    `if_match` is its etag. Raises PromptError with code `bad_prompt` and all errors in the text, or with code
    `already_exists`, `changed`, `read_only` or `not_written`.
    """
    folder, path, data = _prepare(libraries, name, text, draft)
    created = put(folder, path, data, _make_replacement_check(path, if_match))
    return SaveResult(path, make_etag(data), created)


def check_saving(
    libraries: Libraries, name: str, text: str, draft: bool = False, if_match: str | None = None
) -> SaveResult:
    """Return the result that `save_prompt` would have, without saving. Blocks. Raises the same errors."""
    folder, path, data = _prepare(libraries, name, text, draft)
    check_file(folder, path, _make_replacement_check(path, if_match))
    return SaveResult(path, make_etag(data), created=if_match is None)


def _prepare(libraries: Libraries, name: str, text: str, draft: bool) -> tuple[Folder, str, bytes]:
    """Return the folder, the path in it, and the data to write. Raises PromptError if the text is not valid."""
    library = _require_writable_library(libraries)
    declared_name = name
    if name in library:
        path, kind, declared_name = library.path(name), library.kind(name), library.declared_name(name)
    else:
        path = f"{name}.md"
        new_kind = None if find_objections(name) else library.kind_at(path)
        if new_kind is None:
            raise PromptError(
                "bad_prompt", f"{name[:128]!r} is not a valid name for a new prompt", "Use a-z 0-9 and -."
            )
        kind = new_kind
    data = text.encode("utf-8", "surrogatepass")
    problems = lint_file(library, path, kind, data)
    if problems:
        reasons = "; ".join(reason if line is None else f"line {line}: {reason}" for _, line, reason in problems)
        raise PromptError("bad_prompt", reasons, "Nothing was written.")
    name_in_file = parse_file(kind, data).name
    if name_in_file != declared_name:
        reason = f"the front matter says {name_in_file!r}, but the prompt is being saved as {declared_name!r}"
        raise PromptError("bad_prompt", reason)
    if draft:
        path = f"{_DRAFTS}/{name}.md"
        if library.kind_at(path) is not None:
            raise PromptError(
                "not_written", "drafts can't be saved in a commands folder: every file there is a command"
            )
    return Folder(library.root), path, data


def check_deleting(
    libraries: Libraries, name: str, draft: bool = False, if_match: str | None = None
) -> tuple[str, str]:
    """Return the path and the etag of the file that `delete_prompt` would delete. Blocks. Raises the same errors."""
    folder, path = _find_deletable(libraries, name, draft)
    contents: list[bytes] = []

    def check(data: bytes | None) -> None:
        _make_deletion_check(path, if_match)(data)
        contents.append(data or b"")

    check_file(folder, path, check)
    return path, make_etag(contents[0])


def delete_prompt(libraries: Libraries, name: str, draft: bool = False, if_match: str | None = None) -> str:
    """Delete the file of a prompt in the first library, and return its path. Blocks.

    If `if_match` is given, it must be the etag of the file. Raises PromptError with code `not_found`, `changed`,
    `read_only` or `not_written`.
    """
    folder, path = _find_deletable(libraries, name, draft)
    delete(folder, path, _make_deletion_check(path, if_match))
    return path


def _find_deletable(libraries: Libraries, name: str, draft: bool) -> tuple[Folder, str]:
    """Return the folder and the file of a prompt that can be deleted. Raises PromptError."""
    library = _require_writable_library(libraries)
    if draft:
        return Folder(library.root), f"{_DRAFTS}/{name}.md"
    if libraries.library(name) is not library:
        raise PromptError("read_only", f"{name!r} is not in the first library, the only one that can be changed")
    if library.kind(name).form == "skill":
        raise PromptError("not_written", f"{name!r} is a skill, whose directory may have other files besides {SKILL}")
    return Folder(library.root), library.path(name)


def _require_writable_library(libraries: Libraries) -> Library:
    first = libraries.all[0]
    if first.root == STARTER:
        raise PromptError("read_only", "the starter library can't be changed", "Start the server with a DIR.")
    return first


def _make_replacement_check(path: str, if_match: str | None) -> Check:
    """Return a check that allows a new file if `if_match` is None, or else the replacement of a file with this
    etag."""

    def check(data: bytes | None) -> None:
        if data is None and if_match is not None:
            raise PromptError("changed", f"{path!r} no longer exists")
        if data is not None and if_match is None:
            suggestion = f"To replace it, pass its etag as if_match: {make_etag(data)}"
            raise PromptError("already_exists", f"{path!r} already exists", suggestion)
        _require_etag(path, data, if_match)

    return check


def _make_deletion_check(path: str, if_match: str | None) -> Check:
    """Return a check that allows the deletion of a file. If `if_match` is given, it must be the etag of the file."""

    def check(data: bytes | None) -> None:
        if data is None:
            raise PromptError("not_found", f"there is no {path!r}")
        _require_etag(path, data, if_match)

    return check


def _require_etag(path: str, data: bytes | None, if_match: str | None) -> None:
    if data is not None and if_match not in (None, make_etag(data)):
        raise PromptError("changed", f"{path!r} has changed in the meantime; its etag is now {make_etag(data)}")

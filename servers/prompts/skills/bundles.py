"""A prompt as the directory of a skill: a SKILL.md as it is, with all that lies beside it; any other in plain words.

A SKILL.md that is broken by now is given as it was when it was last right, like the prompt that it is.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from servers.prompts.errors import PromptError
from servers.prompts.format.documents import document
from servers.prompts.format.skills import MOST_BYTES, require_size
from servers.prompts.library.forms import SKILL
from servers.prompts.library.library import Library

__all__ = ["Bundle", "Digest", "bundle", "content"]


class Digest(NamedTuple):
    """What is known of the bytes of a file."""

    size: int
    sha256: str


class Bundle(NamedTuple):
    """A skill."""

    front: dict[str, Any]
    """All that the head of its SKILL.md says."""
    files: Mapping[str, Digest]
    """By their paths in its directory; SKILL.md is the first."""
    alone: bool
    """Whether it comes from the file of the prompt only."""


def bundle(library: Library, name: str) -> Bundle:
    """The skill that a prompt is. Raises PromptError where it can't be one."""
    manifest, others = _files(library, name)
    front = dict(document(manifest).front or {})
    files = {SKILL: _digest(manifest), **others}
    try:
        json.dumps(front, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:  # half of a surrogate pair, or a number without end
        raise PromptError("bad_prompt", "the front matter has a value that can't be written as JSON") from None
    require_size(one.size for one in files.values())
    return Bundle(front, files, alone=library.beside(name) is None and library.rendering(name).alone)


def content(library: Library, name: str, file: str) -> bytes:
    """What is now in a file of the skill that a prompt is. Raises PromptError."""
    beside = library.beside(name)
    if beside is None:
        data = library.export(name).get(file)
    elif file == SKILL:
        data = library.source(name)
    else:
        data = library.reader(library.prompt(name))(file, MOST_BYTES) if file in beside else None
    if data is None:
        raise PromptError("not_found", f"the skill {name!r} has no file {file[:200]!r}")
    return data


def _files(library: Library, name: str) -> tuple[bytes, dict[str, Digest]]:
    beside = library.beside(name)
    if beside is None:
        exported = library.export(name)
        manifest = exported.pop(SKILL)
        return manifest, {path: _digest(data) for path, data in exported.items()}
    read, found = library.reader(library.prompt(name)), {}
    for path in sorted(beside):
        try:
            found[path] = _digest(read(path, MOST_BYTES))
        except PromptError:  # it went away, or may not be read
            library.note(name, path, "the skill goes without it: it can't be read")
    return library.source(name), found


def _digest(data: bytes) -> Digest:
    return Digest(len(data), hashlib.sha256(data).hexdigest())

"""Prompts as skills: a SKILL.md as it is, with all that lies beside it; any other prompt in plain words.

Each skill is made when somebody first asks for it, and kept until its files change. A SKILL.md that is broken by now
is given as it was when it was last right, like the prompt that it is.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from anyio import to_thread

from servers.prompts.errors import PromptError
from servers.prompts.format.forms import SKILL
from servers.prompts.format.front_matter import parse_document
from servers.prompts.format.skills import MOST_BYTES, NAME, require_size
from servers.prompts.library.libraries import Libraries
from servers.prompts.library.library import Library
from servers.prompts.library.snapshot import Changed

MOST_LISTED = 500
"""Skills in a list. A host shows them all to its model; what is not listed can be asked for by name."""


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


def make_bundle(library: Library, name: str) -> Bundle:
    """The skill that a prompt is. Raises PromptError where it can't be one."""
    beside = library.beside(name)
    others: dict[str, Digest] = {}
    if beside is None:
        exported = library.export(name)
        manifest = exported.pop(SKILL)
        others = {path: _digest(data) for path, data in exported.items()}
    else:
        read = library.reader(library.prompt(name))
        for path in sorted(beside):
            try:
                others[path] = _digest(read(path, MOST_BYTES))
            except PromptError:  # it went away, or may not be read
                library.note(name, path, "the skill goes without it: it can't be read")
        manifest = library.source(name)
    front = dict(parse_document(manifest).front or {})
    files = {SKILL: _digest(manifest), **others}
    try:
        json.dumps(front, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:  # half of a surrogate pair, or a number without end
        raise PromptError("bad_prompt", "the front matter has a value that can't be written as JSON") from None
    require_size(one.size for one in files.values())
    return Bundle(front, files, alone=beside is None and library.rendering(name).alone)


def read_content(library: Library, name: str, file: str) -> bytes:
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


def _digest(data: bytes) -> Digest:
    return Digest(len(data), hashlib.sha256(data).hexdigest())


class SkillCache:
    """Skills by their names, which are those of prompts."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries
        self._kept: dict[str, Bundle | None] = {}

    def forget(self, changed: Changed) -> None:
        """Has what may have changed be made anew."""
        if not changed.names and not changed.others:
            return
        # What is being made goes into the old one, for it may be made of what was there before.
        kept = ((name, one) for name, one in self._kept.items() if one is not None and one.alone)
        self._kept = {name: one for name, one in kept if name not in changed.names}

    async def get(self, name: str) -> Bundle | None:
        """The skill; None where no prompt has this name, or it can be no skill."""
        if NAME.fullmatch(name) is None or name not in self._libraries:
            return None
        return await to_thread.run_sync(self._make, name, self._kept)

    async def list(self) -> dict[str, Bundle]:
        """The first skills: those that have a directory, then prompts of other forms, in the order of names."""
        return await to_thread.run_sync(self._list_first, self._kept)

    async def read(self, name: str, file: str, sha256: str) -> bytes | None:
        """What is in a file of a skill, if that is still the same."""
        try:
            data = await to_thread.run_sync(partial(read_content, self._libraries.library(name), name, file))
        except PromptError:
            return None
        return data if hashlib.sha256(data).hexdigest() == sha256 else None

    def refuse(self, name: str, reason: str) -> None:
        """Says among the problems of its library why the prompt of this name is no skill, where it should be one."""
        with suppress(PromptError):  # it went away
            self._libraries.library(name).note(name, SKILL, f"it is not a skill: {reason}")

    def _list_first(self, kept: dict[str, Bundle | None]) -> dict[str, Bundle]:
        names = sorted(filter(NAME.fullmatch, self._libraries.names), key=self._has_no_directory)
        made = ((name, self._make(name, kept)) for name in names)
        return dict(islice(((name, one) for name, one in made if one is not None), MOST_LISTED))

    def _has_no_directory(self, name: str) -> bool:
        try:
            return self._libraries.library(name).kind(name).form != "skill"
        except PromptError:  # it went away
            return True

    def _make(self, name: str, kept: dict[str, Bundle | None]) -> Bundle | None:
        if name not in kept:
            try:
                kept[name] = make_bundle(self._libraries.library(name), name)
            except PromptError as error:
                kept[name] = None
                self.refuse(name, error.reason)
        return kept[name]

"""Builds skills from prompts. A SKILL.md stays as it is, with the files next to it. Any other prompt becomes plain
text.

Each skill is built when it is first requested, and cached until its files change. If a SKILL.md becomes invalid, its
last valid version is served, as for prompts.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from anyio import to_thread

from ..errors import PromptError
from ..format.forms import SKILL
from ..format.front_matter import parse_document
from ..format.skills import MAX_BYTES, NAME, require_size
from .libraries import Libraries
from .library import Library
from .snapshot import ScanChanges

MAX_LISTED = 500
"""Maximum number of skills in the list, which a host shows to its model. Others can be requested by name."""


class Digest(NamedTuple):
    """The size of a file in bytes, and its hash."""

    size: int
    sha256: str


class BuiltSkill(NamedTuple):
    """The skill of a prompt, with the digests of its files."""

    front: dict[str, Any]
    """The front matter of the skill's SKILL.md."""
    files: Mapping[str, Digest]
    """The files of the skill, by their paths in its directory. SKILL.md is the first."""
    depends_only_on_prompt: bool
    """True if the skill is built from the file of the prompt alone."""


def build_skill(library: Library, name: str) -> BuiltSkill:
    """Return the skill of a prompt. Raises PromptError if it can't be a skill."""
    sibling_files = library.sibling_files(name)
    other_digests: dict[str, Digest] = {}
    if sibling_files is None:
        exported = library.export(name)
        manifest = exported.pop(SKILL)
        other_digests = {path: _digest(data) for path, data in exported.items()}
    else:
        read_file = library.reader(library.prompt(name))
        for path in sorted(sibling_files):
            try:
                other_digests[path] = _digest(read_file(path, MAX_BYTES))
            except PromptError:  # it was deleted, or may not be read
                library.add_problem(name, path, "it is not part of the skill: it can't be read")
        manifest = library.source(name)
    front = dict(parse_document(manifest).front or {})
    files = {SKILL: _digest(manifest), **other_digests}
    try:
        json.dumps(front, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:  # a lone surrogate, or an infinite number
        raise PromptError("bad_prompt", "the front matter has a value that can't be written as JSON") from None
    require_size(digest.size for digest in files.values())
    return BuiltSkill(
        front, files, depends_only_on_prompt=sibling_files is None and library.rendering(name).depends_only_on_prompt
    )


def read_content(library: Library, name: str, file: str) -> bytes:
    """Return the current content of a file in the skill of a prompt. Raises PromptError."""
    sibling_files = library.sibling_files(name)
    if sibling_files is None:
        data = library.export(name).get(file)
    elif file == SKILL:
        data = library.source(name)
    else:
        data = library.reader(library.prompt(name))(file, MAX_BYTES) if file in sibling_files else None
    if data is None:
        raise PromptError("not_found", f"the skill {name!r} has no file {file[:200]!r}")
    return data


def _digest(data: bytes) -> Digest:
    return Digest(len(data), hashlib.sha256(data).hexdigest())


class SkillCache:
    """A cache of skills by name. A skill has the name of its prompt."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries
        self._skills: dict[str, BuiltSkill | None] = {}

    def forget(self, changed: ScanChanges) -> None:
        """Drop the skills that may have changed."""
        if not changed.names and not changed.other_files_changed:
            return
        # A skill that is being built now may come from the old state. Replacing the dictionary discards it, since it
        # will be stored in the old one.
        unchanged = (
            (name, skill)
            for name, skill in self._skills.items()
            if skill is not None and skill.depends_only_on_prompt
        )
        self._skills = {name: skill for name, skill in unchanged if name not in changed.names}

    async def get(self, name: str) -> BuiltSkill | None:
        """Return the skill; None if no prompt has this name, or it can't be a skill."""
        if NAME.fullmatch(name) is None or name not in self._libraries:
            return None
        return await to_thread.run_sync(self._make, name, self._skills)

    async def list(self) -> dict[str, BuiltSkill]:
        """Return at most MAX_LISTED skills, sorted by name: first those with a SKILL.md, then the others."""
        return await to_thread.run_sync(self._list_first, self._skills)

    async def read(self, name: str, file: str, sha256: str) -> bytes | None:
        """Return the contents of a skill's file if its hash is unchanged; otherwise None."""
        try:
            data = await to_thread.run_sync(partial(read_content, self._libraries.library(name), name, file))
        except PromptError:
            return None
        return data if hashlib.sha256(data).hexdigest() == sha256 else None

    def report_invalid(self, name: str, reason: str) -> None:
        """Add the reason why a prompt is not a valid skill to the problems of its library."""
        with suppress(PromptError):  # it was deleted
            library = self._libraries.library(name)
            library.add_problem(name, library.path(name).rpartition("/")[2], f"it is not a skill: {reason}")

    def _list_first(self, cache: dict[str, BuiltSkill | None]) -> dict[str, BuiltSkill]:
        names = sorted(filter(NAME.fullmatch, self._libraries.names), key=self._has_no_directory)
        candidates = ((name, self._make(name, cache)) for name in names)
        return dict(islice(((name, skill) for name, skill in candidates if skill is not None), MAX_LISTED))

    def _has_no_directory(self, name: str) -> bool:
        try:
            return self._libraries.library(name).kind(name).form != "skill"
        except PromptError:  # it was deleted
            return True

    def _make(self, name: str, cache: dict[str, BuiltSkill | None]) -> BuiltSkill | None:
        if name not in cache:
            try:
                cache[name] = build_skill(self._libraries.library(name), name)
            except PromptError as error:
                cache[name] = None
                self.report_invalid(name, error.reason)
        return cache[name]

"""Combines several libraries. If several have a prompt with the same name, that of the first library is used."""

import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ..errors import Problem, PromptError
from ..format.definitions import Prompt
from ..templates.rendering import Rendering
from .library import Library
from .snapshot import ScanChanges

STARTER = Path(__file__).parents[1] / "starter"
"""The library that is included with the server."""


class LibraryProblem(NamedTuple):
    """A problem, and the library that has it."""

    root: Path
    problem: Problem


class Origin(Protocol):
    """The source of a library that is fetched into its folder."""

    @property
    def shown(self) -> str:
        """The description of the source for clients."""

    @property
    def commit(self) -> str | None:
        """The fetched commit; None before the first fetch."""

    def load(self) -> None:
        """Read the commit and the problems from the cache again. Blocks."""

    def problems(self) -> list[Problem]:
        """Return the problems of the last fetch."""


class Libraries:
    """The prompts of several folders. The first folder has precedence. All methods except `scan` are thread-safe."""

    def __init__(self, roots: Sequence[Path], origins: Mapping[Path, Origin] = MappingProxyType({})) -> None:
        self.origins = origins
        """The sources of the libraries that are fetched, by their folders."""
        self.all = tuple(Library(root) for root in dict.fromkeys(roots))
        """The libraries, in order of precedence."""
        self._names: list[str] = []

    @property
    def names(self) -> list[str]:
        """The sorted names of all prompts, including those whose file may turn out to be broken."""
        return self._names

    def count_unreadable(self) -> int:
        """Return the number of folders that can't be read now. Blocks."""
        unreadable = 0
        for library in self.all:
            try:
                with os.scandir(library.root) as entries:
                    next(entries, None)
            except OSError:
                unreadable += 1
        return unreadable

    def __contains__(self, name: str) -> bool:
        return any(name in library for library in self.all)

    def find_missing(self) -> list[str]:
        """Return the reasons why libraries are missing that were never fetched."""
        missing = (origin for origin in self.origins.values() if origin.commit is None)
        return [problem.reason for origin in missing for problem in origin.problems()]

    def library(self, name: str) -> Library:
        """Return the library of the prompt with this name. Raises PromptError if no library has it."""
        for candidate in self.all:
            if name in candidate:
                return candidate
        missing = " ".join(f"{reason}." for reason in self.find_missing())
        raise PromptError("not_found", f"there is no prompt {name[:128]!r}", missing)

    def prompt(self, name: str) -> Prompt:
        """Return the prompt. Raises PromptError with code `not_found`, or `bad_prompt` if its file is broken."""
        return self.library(name).prompt(name)

    def page(self, after: str, limit: int) -> list[Prompt]:
        """Return the next prompts after the name `after`, sorted by name, without those whose file is broken."""
        prompts: list[Prompt] = []
        for name in self._names[bisect_right(self._names, after) :]:
            if len(prompts) == limit:
                break
            with suppress(PromptError):
                prompts.append(self.prompt(name))
        return prompts

    def rendering(self, name: str) -> Rendering:
        """Return the current prompt, ready to be rendered. Raises PromptError."""
        return self.library(name).rendering(name)

    def get_compiled(self, name: str) -> Rendering | None:
        """Return the current prompt if it was compiled before; otherwise None."""
        for library in self.all:
            if name in library:
                return library.get_compiled(name)
        return None

    def problems(self) -> list[LibraryProblem]:
        """Return the problems of the files that have been read."""
        problems: list[LibraryProblem] = []
        for library in self.all:
            origin = self.origins.get(library.root)
            listed = [] if origin is None else origin.problems()
            # Before the first fetch the folder does not exist. Leave this problem out: the origin gives the reason.
            if origin is None or origin.commit:
                listed = listed + library.problems()
            problems += (LibraryProblem(library.root, problem) for problem in listed)
        return problems

    def is_behind(self) -> bool:
        """Return True if folders have changes that affect lists and have not been read yet. Blocks."""
        return any(library.is_behind() for library in self.all)

    def scan(self) -> ScanChanges | None:
        """Read the files of all libraries that are new or have changed since the last scan. Return the changes; None
        if there are none. Blocks."""
        changes: list[ScanChanges] = []
        for library in self.all:
            if (change := library.scan()) is None:
                continue
            changes.append(change)
            # Another process, such as the command `update`, may have fetched the files.
            if (origin := self.origins.get(library.root)) is not None:
                origin.load()
        self._names = sorted({name for library in self.all for name in library.names})
        if not changes:
            return None
        names = frozenset().union(*(change.names for change in changes))
        return ScanChanges(names, any(change.other_files_changed for change in changes))

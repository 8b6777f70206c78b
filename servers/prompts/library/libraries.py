"""Several libraries as one: a name means the prompt of the first library that has it."""

import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from servers.prompts.errors import Problem, PromptError
from servers.prompts.format.definitions import Prompt
from servers.prompts.library.library import Library
from servers.prompts.library.snapshot import Changed
from servers.prompts.templates.rendering import Rendering

STARTER = Path(__file__).parents[1] / "starter"
"""The library that comes with the server."""


class Found(NamedTuple):
    """Where a problem is."""

    root: Path
    problem: Problem


class Origin(Protocol):
    """Where the folder of a library is fetched from."""

    @property
    def shown(self) -> str:
        """What clients are told of the place."""

    @property
    def commit(self) -> str | None:
        """What of it is there; None where nothing is."""

    def problems(self) -> list[Problem]:
        """What could not be fetched."""


class Libraries:
    """The prompts of several folders, the first of which has precedence. Thread-safe but for `look`."""

    def __init__(self, roots: Sequence[Path], origins: Mapping[Path, Origin] = MappingProxyType({})) -> None:
        self.origins = origins
        """Of those folders that are fetched."""
        self.all = tuple(Library(root) for root in dict.fromkeys(roots))
        """The libraries, first that with precedence."""
        self._names: list[str] = []

    @property
    def names(self) -> list[str]:
        """The names of all prompts, sorted. A prompt whose file turns out to be broken is among them."""
        return self._names

    def count_unreadable(self) -> int:
        """How many of the folders can't be read now. Blocks."""
        unreadable = 0
        for one in self.all:
            try:
                with os.scandir(one.root) as entries:
                    next(entries, None)
            except OSError:
                unreadable += 1
        return unreadable

    def __contains__(self, name: str) -> bool:
        return any(name in one for one in self.all)

    def find_missing(self) -> list[str]:
        """Return why there is nothing of some libraries, one reason for each."""
        missing = (origin for origin in self.origins.values() if origin.commit is None)
        return [problem.reason for origin in missing for problem in origin.problems()]

    def library(self, name: str) -> Library:
        """The library that a name means the prompt of. Raises PromptError where there is none."""
        for one in self.all:
            if name in one:
                return one
        missing = " ".join(f"{reason}." for reason in self.find_missing())
        raise PromptError("not_found", f"there is no prompt {name[:128]!r}", missing)

    def prompt(self, name: str) -> Prompt:
        """The prompt. Raises PromptError: `not_found`, or `bad_prompt` for one whose file is broken."""
        return self.library(name).prompt(name)

    def page(self, after: str, most: int) -> list[Prompt]:
        """The next prompts in the order of names, without those whose file is broken."""
        found: list[Prompt] = []
        for name in self._names[bisect_right(self._names, after) :]:
            if len(found) == most:
                break
            with suppress(PromptError):
                found.append(self.prompt(name))
        return found

    def rendering(self, name: str) -> Rendering:
        """The prompt as it is now, ready to be rendered. Raises PromptError."""
        return self.library(name).rendering(name)

    def problems(self) -> list[Found]:
        """What is wrong with files, as far as they were read."""
        return [Found(one.root, problem) for one in self.all for problem in self._find_problems(one)]

    def _find_problems(self, library: Library) -> list[Problem]:
        origin = self.origins.get(library.root)
        if origin is None:
            return library.problems()
        # A folder that was never fetched can't be read, which says less than why.
        return origin.problems() + (library.problems() if origin.commit else [])

    def is_behind(self) -> bool:
        """Whether there is something for a look to find that a list has to have. Blocks."""
        return any(one.is_behind() for one in self.all)

    def look(self) -> Changed | None:
        """Reads what is new or changed in all libraries since the last look; None where nothing is. Blocks."""
        found = [change for change in [one.look() for one in self.all] if change is not None]
        self._names = sorted({name for one in self.all for name in one.names})
        if not found:
            return None
        names = frozenset().union(*(one.names for one in found))
        return Changed(names, any(one.others for one in found))

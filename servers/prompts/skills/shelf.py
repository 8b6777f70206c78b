"""The skills of the libraries, each made when somebody first asks for it and kept until its files change."""

import hashlib
from contextlib import suppress
from functools import partial
from itertools import islice

from anyio import to_thread

from servers.prompts.errors import PromptError
from servers.prompts.format.skills import NAME
from servers.prompts.library.forms import SKILL
from servers.prompts.library.libraries import Libraries
from servers.prompts.skills.bundles import Bundle, bundle, content
from servers.prompts.watching.watch import News

__all__ = ["MOST_LISTED", "Shelf"]

MOST_LISTED = 500
"""Skills in a list. A host shows them all to its model; what is not listed can be asked for by name."""


class Shelf:
    """Skills by their names, which are those of prompts."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries
        self._kept: dict[str, Bundle | None] = {}

    def forget(self, news: News) -> None:
        """Has what may have changed be made anew."""
        if not news.names and not news.others:
            return
        # What is being made goes into the old one, for it may be made of what was there before.
        self._kept = {
            name: one for name, one in self._kept.items() if name not in news.names and one is not None and one.alone
        }

    async def get(self, name: str) -> Bundle | None:
        """The skill; None where no prompt has this name, or it can be no skill."""
        if NAME.fullmatch(name) is None or name not in self._libraries:
            return None
        return await to_thread.run_sync(self._made, name, self._kept)

    async def listed(self) -> dict[str, Bundle]:
        """The first skills: those that have a directory, then prompts of other forms, in the order of names."""
        return await to_thread.run_sync(self._first, self._kept)

    async def read(self, name: str, file: str, sha256: str) -> bytes | None:
        """What is in a file of a skill, if that is still the same."""
        try:
            data = await to_thread.run_sync(partial(content, self._libraries.library(name), name, file))
        except PromptError:
            return None
        return data if hashlib.sha256(data).hexdigest() == sha256 else None

    def refuse(self, name: str, reason: str) -> None:
        """Says among the problems of its library why the prompt of this name is no skill, where it should be one."""
        with suppress(PromptError):  # it went away
            self._libraries.library(name).note(name, SKILL, f"it is no skill: {reason}")

    def _first(self, kept: dict[str, Bundle | None]) -> dict[str, Bundle]:
        names = sorted(filter(NAME.fullmatch, self._libraries.names), key=self._has_no_directory)
        made = ((name, self._made(name, kept)) for name in names)
        return dict(islice(((name, one) for name, one in made if one is not None), MOST_LISTED))

    def _has_no_directory(self, name: str) -> bool:
        try:
            return self._libraries.library(name).kind(name).form != "skill"
        except PromptError:  # it went away
            return True

    def _made(self, name: str, kept: dict[str, Bundle | None]) -> Bundle | None:
        if name not in kept:
            try:
                kept[name] = bundle(self._libraries.library(name), name)
            except PromptError as error:
                kept[name] = None
                self.refuse(name, error.reason)
        return kept[name]

"""The state that all features use, and the conversion of errors for clients."""

from typing import NamedTuple

from shared import Context, InvalidParams

from ..errors import PromptError
from ..library.folder import Folder
from ..library.libraries import Libraries
from ..library.skills import SkillCache
from ..library.watch import Watch
from ..settings import Settings


class LibraryState(NamedTuple):
    """The objects that the server keeps while it runs."""

    libraries: Libraries
    files: tuple[Folder, ...]
    """The folders whose files are suggested as values of arguments."""
    settings: Settings
    skills: SkillCache
    watch: Watch
    subscribed: dict[str, str]
    """For each subscription key, the name of its prompt."""


Ctx = Context[LibraryState]


def explain(error: PromptError) -> str:
    """Return the text of an error for clients."""
    return f"{error.code}: {error}"


def make_refusal(error: PromptError) -> InvalidParams:
    """Return the error that prompts and resources raise. Tools raise the PromptError itself."""
    return InvalidParams(explain(error))

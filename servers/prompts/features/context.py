"""What all features work on, and what clients are told of errors."""

from typing import NamedTuple

from shared import Context, InvalidParams

from ..errors import PromptError
from ..library.folder import Folder
from ..library.libraries import Libraries
from ..library.skills import SkillCache
from ..library.watch import Watch
from ..settings import Settings


class Opened(NamedTuple):
    """What one run of the server has open."""

    libraries: Libraries
    files: tuple[Folder, ...]
    """Where the files lie that are suggested for arguments."""
    settings: Settings
    skills: SkillCache
    watch: Watch
    subscribed: dict[str, str]
    """The keys that somebody subscribes to, and the prompt that each is about."""


Ctx = Context[Opened]


def explain(error: PromptError) -> str:
    """What a client is told of an error."""
    return f"{error.code}: {error}"


def make_refusal(error: PromptError) -> InvalidParams:
    """What prompts and resources raise, where tools may let the error pass."""
    return InvalidParams(explain(error))

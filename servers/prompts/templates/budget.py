"""What one rendering may take."""

import time
from contextvars import ContextVar
from typing import Any

from servers.prompts.errors import PromptError

MOST_CHARACTERS = 1_000_000
"""Of what is rendered, all messages together, and of each text on the way there."""
MOST_ITEMS = 10_000
"""Of a list."""
MOST_SOURCE = 100_000
"""Characters of the templates of a prompt, with all that they include."""
MOST_FILE_BYTES = 4_000_000
"""Of an embedded file; all of a prompt together have twice as many."""
_MOST_MADE = 10_000_000
_STEPS = 100_000
_SECONDS = 1.0


class RenderBudget:
    """What is left to a rendering, and the templates that it may include."""

    def __init__(self, partials: dict[str, Any], seconds: float = _SECONDS) -> None:
        self.partials = partials
        self._steps = _STEPS
        self._deadline = time.monotonic() + seconds
        self._characters = MOST_CHARACTERS
        self._made = _MOST_MADE
        self._bytes = 2 * MOST_FILE_BYTES

    def step(self) -> None:
        """Counts a step of a loop or a call of a filter. Raises PromptError where there were too many."""
        self._steps -= 1
        if self._steps < 0:
            raise PromptError("too_long", f"rendering takes more than {_STEPS:,} steps")
        if time.monotonic() > self._deadline:
            raise PromptError("too_long", f"rendering takes more than {_SECONDS:g} s")

    def make(self, size: int) -> None:
        """Counts the characters, or items, of a value that a template makes: it may keep them all. Raises PromptError
        where they are too many."""
        self._made -= size
        if self._made < 0:
            reason = f"rendering makes texts and lists of more than {_MOST_MADE:,} characters and items"
            raise PromptError("too_large", reason)

    def write(self, characters: int) -> None:
        """Counts what is rendered. Raises PromptError where it is too much."""
        self._characters -= characters
        if self._characters < 0:
            raise PromptError("too_large", f"the prompt gets more than {MOST_CHARACTERS:,} characters")

    def embed(self, size: int) -> None:
        """Counts the bytes of embedded files. Raises PromptError where they are too many."""
        self._bytes -= size
        if self._bytes < 0:
            raise PromptError("too_large", f"the embedded files have more than {2 * MOST_FILE_BYTES:,} bytes")


spending: ContextVar[RenderBudget] = ContextVar("spending")
"""The budget of the rendering that is under way."""

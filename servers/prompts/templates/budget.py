"""The limits of one rendering."""

import time
from contextvars import ContextVar
from typing import Any

from ..errors import PromptError

MAX_CHARACTERS = 1_000_000
"""Maximum number of characters in all messages combined, and in each intermediate text."""
MAX_ITEMS = 10_000
"""Maximum number of items in a list."""
MAX_SOURCE_LENGTH = 100_000
"""Maximum size of a prompt's templates with all includes, in characters."""
MAX_FILE_BYTES = 4_000_000
"""Maximum size of an embedded file in bytes. All files of a prompt together may have twice as many."""
_MAX_CREATED = 10_000_000
"""Maximum number of characters and items in all values that a template creates."""
_MAX_STEPS = 100_000
RENDER_SECONDS = 1.0
"""The default time limit of a rendering, in seconds."""


class RenderBudget:
    """What a rendering may still use of each limit, and the templates that it may include."""

    def __init__(self, partials: dict[str, Any], seconds: float = RENDER_SECONDS) -> None:
        self.partials = partials
        self._steps = _MAX_STEPS
        self._deadline = time.monotonic() + seconds
        self._characters = MAX_CHARACTERS
        self._created = _MAX_CREATED
        self._embedded_bytes = 2 * MAX_FILE_BYTES

    def count_step(self) -> None:
        """Count a step of a loop or a filter call. Raises PromptError if there are too many."""
        self._steps -= 1
        if self._steps < 0:
            raise PromptError("too_long", f"rendering takes more than {_MAX_STEPS:,} steps")
        if time.monotonic() > self._deadline:
            raise PromptError("too_long", f"rendering takes more than {RENDER_SECONDS:g} s")

    def count_created(self, size: int) -> None:
        """Count the characters or items of a value that a template creates, since it may keep all of them. Raises
        PromptError if there are too many."""
        self._created -= size
        if self._created < 0:
            reason = f"rendering creates strings and lists with more than {_MAX_CREATED:,} characters and items"
            raise PromptError("too_large", reason)

    def count_written(self, characters: int) -> None:
        """Count the rendered characters. Raises PromptError if there are too many."""
        self._characters -= characters
        if self._characters < 0:
            raise PromptError("too_large", f"the rendered prompt has more than {MAX_CHARACTERS:,} characters")

    def count_embedded(self, size: int) -> None:
        """Count the bytes of embedded files. Raises PromptError if there are too many."""
        self._embedded_bytes -= size
        if self._embedded_bytes < 0:
            raise PromptError("too_large", f"the embedded files have more than {2 * MAX_FILE_BYTES:,} bytes")


current_budget: ContextVar[RenderBudget] = ContextVar("current_budget")
"""The budget of the current rendering."""

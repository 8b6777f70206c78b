"""The interface that turns a call into a task."""

from collections.abc import Mapping
from typing import Any, Protocol

from ...protocol.session.questions import Question


class CallTask(Protocol):
    """Turns one call into a task, and replaces its peer from then on: the task outlives the request."""

    is_detached: bool
    """True if the call is a task: its peer has received the id, and reports of the call concern the task."""

    async def detach(self) -> bool:
        """Turn the call into a task, and answer the call with it. Return False if the call can't become a task now,
        or is over."""

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Record the progress of the call."""

    def say(self, text: str) -> None:
        """Set the status message of the task to `text`, soon. Never waits."""

    def note(self, progress: float, total: float | None, message: str | None) -> None:
        """Record the progress like `report`. Never waits."""

    async def ask(self, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Return the raw answers to the questions of a task, by key. Raises MissingCapability for a capability that
        the peer has not declared, and PeerError if the peer answers with an error."""

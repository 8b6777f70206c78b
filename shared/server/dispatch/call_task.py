"""The interface of the object that can turn a call into a task of the protocol."""

from collections.abc import Mapping
from typing import Any, Protocol

from ...protocol.session.questions import Question


class CallTask(Protocol):
    """Can turn one call into a task, which continues after its request was answered. Once the call is a task, this
    object replaces the call's peer."""

    is_detached: bool
    """True if the call has become a task."""

    async def detach(self) -> bool:
        """Turn the call into a task, and answer the request with the task. Return False if the call can't become a
        task now, or is over."""

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Record the progress of the call as the status message of the task."""

    def set_message(self, text: str) -> None:
        """Set the status message of the task to `text`, soon after this method returns. Never waits."""

    def note(self, progress: float, total: float | None, message: str | None) -> None:
        """Record the progress like `report`, soon after this method returns. Never waits."""

    async def ask(self, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Ask the client the `questions` of the task, and return its raw answers, by key. Raises MissingCapability
        for a capability that the client did not declare, and PeerError if the client answers with an error."""

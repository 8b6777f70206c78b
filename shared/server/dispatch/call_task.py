"""What makes a task of a call."""

from collections.abc import Mapping
from typing import Any, Protocol

from ...protocol.session.questions import Question


class CallTask(Protocol):
    """Makes a task of one call, and stands for its peer from then on: the task outlives the request."""

    is_detached: bool
    """Whether the call is a task: its peer has the id, and what is said of the call concerns the task."""

    async def detach(self) -> bool:
        """Makes a task of the call, which is answered by that; False where it can be none now, or is over."""

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Takes note of how far the call is."""

    def say(self, text: str) -> None:
        """Has the status of the task say `text`, soon. Never waits."""

    def note(self, progress: float, total: float | None, message: str | None) -> None:
        """The same as `report`. Never waits."""

    async def ask(self, questions: Mapping[str, Question]) -> dict[str, Any]:
        """What is answered to the questions of a task, by key, as it came. Raises MissingCapability for what its peer
        has not declared, and PeerError for an error in place of an answer."""

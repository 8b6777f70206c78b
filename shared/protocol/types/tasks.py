"""Tasks: work that outlives its request, as the extension io.modelcontextprotocol/tasks (SEP-2663) and, in 2025-11-25
alone, as a part of the protocol (2025-11-25, Utilities, Tasks). Both forms have methods of the same names."""

from typing import Any, Literal

from pydantic import Field

from .base import Params, Wire
from .tools import ListParams

TASKS = "io.modelcontextprotocol/tasks"
"""The extension's own name."""
RELATED_TASK = "io.modelcontextprotocol/related-task"
"""In `_meta` of a message of 2025-11-25: the task that it belongs to, `{"taskId": ...}`."""

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""The status of a task; the last three are final."""


class TaskParams(Params):
    """Params that name one task."""

    task_id: str


class UpdateTaskParams(TaskParams):
    """Answers to a task's questions, by their keys; they need not all come at once."""

    input_responses: dict[str, dict[str, Any]]


class ListTasksParams(ListParams):
    """The page of the list of tasks of 2025-11-25."""


class TaskRequest(Wire):
    """The `task` of a request of 2025-11-25 that is to be run as one; `ttl` is how many milliseconds it is to be kept
    from its creation on."""

    ttl: float | None = Field(default=None, ge=0)

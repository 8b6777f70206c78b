"""Tasks: work that outlives its request. They are the extension io.modelcontextprotocol/tasks (SEP-2663) and, only in
2025-11-25, part of the protocol (2025-11-25, Utilities, Tasks). Both forms have methods with the same names."""

from typing import Any, Literal

from pydantic import Field

from .base import Params, Wire
from .tools import ListParams

TASKS = "io.modelcontextprotocol/tasks"
"""The extension's own name."""
RELATED_TASK = "io.modelcontextprotocol/related-task"
"""In `_meta` of a message of 2025-11-25: the task to which it belongs, `{"taskId": ...}`."""

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""The status of a task; the last three are final."""


class TaskParams(Params):
    """Params with the id of one task."""

    task_id: str


class UpdateTaskParams(TaskParams):
    """Answers to a task's questions, by key. They need not all come at once."""

    input_responses: dict[str, dict[str, Any]]


class ListTasksParams(ListParams):
    """The params of a page of the task list of 2025-11-25."""


class TaskRequest(Wire):
    """The `task` param of a 2025-11-25 request that is to be run as a task. `ttl` is the number of milliseconds for
    which it is kept after its creation."""

    ttl: float | None = Field(default=None, ge=0)

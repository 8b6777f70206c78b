"""Tasks: work that continues after its request was answered. There are two forms, whose methods have the same names:
the extension io.modelcontextprotocol/tasks (SEP-2663), and the tasks of 2025-11-25, the only version of the protocol
that contains tasks (2025-11-25, Utilities, Tasks)."""

from typing import Any, Literal

from pydantic import Field

from .base import Params, Wire
from .tools import ListParams

TASKS = "io.modelcontextprotocol/tasks"
"""The identifier of the extension."""
RELATED_TASK = "io.modelcontextprotocol/related-task"
"""A key of `_meta` in 2025-11-25. Its value names the task to which a message belongs: `{"taskId": ...}`."""

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""The status of a task; the last three are final."""


class TaskParams(Params):
    """Params with the id of one task."""

    task_id: str


class UpdateTaskParams(TaskParams):
    """Answers to the requests for input of a task, by key. A client may send some now and others later."""

    input_responses: dict[str, dict[str, Any]]


class ListTasksParams(ListParams):
    """The params of a page of the task list of 2025-11-25."""


class TaskRequest(Wire):
    """The `task` param of a request that should run as a task, in 2025-11-25. `ttl` is the number of milliseconds for
    which the task should be stored after its creation."""

    ttl: float | None = Field(default=None, ge=0)

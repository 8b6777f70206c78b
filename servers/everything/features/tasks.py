"""Calls that may become tasks, for clients that support tasks as version 2026-07-28 or 2025-11-25 defines them."""

from typing import Annotated

import anyio
from pydantic import BaseModel, Field

from shared import Features, RpcError, ToolError, elicit_form

from . import Ctx
from .questions import CONFIRM, NAME, NAME_SCHEMA
from .schemas import Name

features = Features[None]()

TASK_SECONDS = 0.75
"""Duration of a call that is long enough to become a task."""
CONFIRM_SCHEMA = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}


class Deletion(BaseModel):
    """A yes or no."""

    confirm: bool


@features.tool(title="Greeting", read_only=True)
async def greet(name: str) -> str:
    """Greet at once: never a task."""
    return f"Hello, {name}!"


@features.tool(title="Task", read_only=True, task="optional")
async def slow_compute(ctx: Ctx, seconds: Annotated[float, Field(ge=0, le=3_600)], label: str = "work") -> str:
    """Run for the given time and report progress; a long run becomes a task."""
    steps = max(int(seconds * 4), 1)
    for step in range(steps):
        await ctx.progress(step, steps, label)
        await anyio.sleep(seconds / steps)
    return f"{label} took {seconds:g} seconds."


@features.tool(title="Failing task", read_only=True, task="required")
async def failing_job() -> str:
    """Fail as a tool in a task does: with an error result."""
    await anyio.sleep(TASK_SECONDS)
    raise ToolError("the job has failed")


@features.tool(title="Task that ends with an error", read_only=True, task="required")
async def protocol_error_job() -> str:
    """Fail as a task without a result does: with a protocol error."""
    await anyio.sleep(TASK_SECONDS)
    raise RpcError("the job ended with a protocol error", code=-32603)


@features.tool(title="Task with a question", read_only=True, task="required")
async def confirm_delete(ctx: Ctx, filename: str) -> str:
    """Ask for confirmation while the task is running. Nothing is deleted."""
    answer = await ctx.ask("confirm", f"Delete {filename}?", Deletion)
    return f"{'Confirmed' if answer.data is not None and answer.data.confirm else 'Left alone'}: {filename}"


@features.tool(title="Task with two questions", read_only=True, task="required")
async def multi_input(ctx: Ctx) -> str:
    """Ask for a name and a confirmation at once, while the task is running."""
    questions = {"name": elicit_form(NAME, NAME_SCHEMA), "confirm": elicit_form(CONFIRM, CONFIRM_SCHEMA)}
    answers = await ctx.inputs(questions)
    return ", ".join(f"{key}: {answers[key].action}" for key in questions)


@features.tool(title="Question, then a task", read_only=True, task="optional")
async def test_tool_with_task(ctx: Ctx) -> str:
    """Ask for a name before the task starts, then greet at its end."""
    answer = await ctx.ask("user_name", NAME, Name)
    await anyio.sleep(TASK_SECONDS)
    return f"Hello, {answer.data.name}!" if answer.data is not None else f"The user chose to {answer.action}."

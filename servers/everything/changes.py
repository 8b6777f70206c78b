"""What changes while a client looks on: the lists of tools, prompts and resources, and one resource."""

from .app import Ctx, app
from .resources import WATCHED

__all__ = [
    "extra_prompt",
    "extra_resource",
    "extra_tool",
    "test_trigger_prompt_change",
    "test_trigger_tool_change",
    "trigger_resource_change",
    "trigger_resource_update",
]

EXTRA = "test://extra-resource"


async def extra_tool() -> str:
    """Be there at times: test_trigger_tool_change adds this tool and takes it away again."""
    return "I am here for the moment."


async def extra_prompt() -> str:
    """Be there at times: test_trigger_prompt_change adds this prompt and takes it away again."""
    return "I am here for the moment."


async def extra_resource() -> str:
    """Is there at times: trigger_resource_change adds this resource and takes it away again."""
    return "I am here for the moment."


def _told(name: str, removed: bool) -> str:
    return f"{'Removed' if removed else 'Added'} {name}"


@app.tool(title="Change the tools", destructive=False)
async def test_trigger_tool_change(ctx: Ctx) -> str:
    """Add the tool `extra_tool`, or remove it, and announce that."""
    removed = ctx.running.features.tools.remove("extra_tool")
    if not removed:
        ctx.running.features.tool(title="Extra tool", read_only=True)(extra_tool)
    ctx.changes.tools()
    return _told("extra_tool", removed)


@app.tool(title="Change the prompts", destructive=False)
async def test_trigger_prompt_change(ctx: Ctx) -> str:
    """Add the prompt `extra_prompt`, or remove it, and announce that."""
    removed = ctx.running.features.prompts.remove("extra_prompt")
    if not removed:
        ctx.running.features.prompt(title="Extra prompt")(extra_prompt)
    ctx.changes.prompts()
    return _told("extra_prompt", removed)


@app.tool(title="Change the resources", destructive=False)
async def trigger_resource_change(ctx: Ctx) -> str:
    """Add the resource `test://extra-resource`, or remove it, and announce that."""
    removed = ctx.running.features.resources.remove(EXTRA)
    if not removed:
        ctx.running.features.resource(EXTRA, mime_type="text/plain")(extra_resource)
    ctx.changes.resources()
    return _told(EXTRA, removed)


@app.tool(title="Change the watched resource", destructive=False)
async def trigger_resource_update(ctx: Ctx) -> str:
    """Change `test://watched-resource`, and announce that to its subscribers."""
    WATCHED.version += 1
    ctx.changes.resource(WATCHED.uri)
    return f"{WATCHED.uri} is now at version {WATCHED.version}"

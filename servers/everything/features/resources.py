"""Resources: text, bytes, several under a template, and one that changes.

The lists of tools, prompts and resources can change too while a client is connected.
"""

import json
from dataclasses import dataclass

from shared import Features, TextResourceContents

from . import Ctx
from .answers import PNG

features = Features[None]()

EXTRA_URI = "test://extra-resource"


@dataclass
class Watched:
    """The resource that changes. All clients see the same version."""

    uri: str = "test://watched-resource"
    version: int = 1


WATCHED = Watched()


@features.resource("test://static-text", name="static-text", title="Static text", mime_type="text/plain")
async def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@features.resource("test://static-binary", name="static-binary", title="Static picture", mime_type="image/png")
async def static_binary() -> bytes:
    """An image that never changes."""
    return PNG


@features.resource(WATCHED.uri, name="watched-resource", title="Watched resource", mime_type="text/plain")
async def watched_resource() -> str:
    """A text to subscribe to; trigger_resource_update changes it."""
    return f"This is version {WATCHED.version} of the watched resource."


@features.resource(
    "test://template/{id}/data", name="template-data", title="Data by id", mime_type="application/json"
)
async def template_data(id: str) -> TextResourceContents:
    """Made-up data for any id."""
    data = {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
    text = json.dumps(data, separators=(",", ":"))
    return TextResourceContents(uri=f"test://template/{id}/data", mime_type="application/json", text=text)


@features.completes("resource", "test://template/{id}/data", "id")
async def _complete_id(_ctx: object, typed: str, _other_arguments: object) -> list[str]:
    return [id_ for id_ in ("123", "456", "789") if id_.startswith(typed)]


async def extra_tool() -> str:
    """Exist at times: test_trigger_tool_change adds this tool and removes it again."""
    return "I am here for the moment."


async def extra_prompt() -> str:
    """Exist at times: test_trigger_prompt_change adds this prompt and removes it again."""
    return "I am here for the moment."


async def extra_resource() -> str:
    """Exists at times: trigger_resource_change adds this resource and removes it again."""
    return "I am here for the moment."


async def _ask_permission(ctx: Ctx, name: str) -> None:
    if ctx.settings.confirm:
        await ctx.confirm(f"Change {name} for all clients?")


def _describe_change(name: str, removed: bool) -> str:
    return f"{'Removed' if removed else 'Added'} {name}"


@features.tool(title="Change the tools", destructive=False)
async def test_trigger_tool_change(ctx: Ctx) -> str:
    """Add or remove the tool `extra_tool`, and announce the change."""
    await _ask_permission(ctx, "extra_tool")
    removed = ctx.running.features.tools.remove("extra_tool")
    if not removed:
        ctx.running.features.tool(title="Extra tool", read_only=True)(extra_tool)
    ctx.changes.tools()
    return _describe_change("extra_tool", removed)


@features.tool(title="Change the prompts", destructive=False)
async def test_trigger_prompt_change(ctx: Ctx) -> str:
    """Add or remove the prompt `extra_prompt`, and announce the change."""
    await _ask_permission(ctx, "extra_prompt")
    removed = ctx.running.features.prompts.remove("extra_prompt")
    if not removed:
        ctx.running.features.prompt(title="Extra prompt")(extra_prompt)
    ctx.changes.prompts()
    return _describe_change("extra_prompt", removed)


@features.tool(title="Change the resources", destructive=False)
async def trigger_resource_change(ctx: Ctx) -> str:
    """Add or remove the resource `test://extra-resource`, and announce the change."""
    await _ask_permission(ctx, EXTRA_URI)
    removed = ctx.running.features.resources.remove(EXTRA_URI)
    if not removed:
        ctx.running.features.resource(EXTRA_URI, mime_type="text/plain")(extra_resource)
    ctx.changes.resources()
    return _describe_change(EXTRA_URI, removed)


@features.tool(title="Change the watched resource", destructive=False)
async def trigger_resource_update(ctx: Ctx) -> str:
    """Change `test://watched-resource`, and notify its subscribers."""
    await _ask_permission(ctx, WATCHED.uri)
    WATCHED.version += 1
    ctx.changes.resource(WATCHED.uri)
    return f"{WATCHED.uri} is now at version {WATCHED.version}"

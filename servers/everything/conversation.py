"""Calls during which the server asks back: forms, pages to visit, completions, roots.

They work in every version that has the question: as a request to the client, or as an `input_required` result.
"""

from typing import Any

from pydantic import BaseModel

from shared import Answer, ToolError

from .app import Ctx, app
from .forms import Choices, Contact, Defaults, Everything

__all__ = [
    "elicit_every_field",
    "elicit_visit",
    "sample_with_tools",
    "show_roots",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_sampling",
    "test_streaming_elicitation",
    "user_message",
]

MAX_TOKENS = 100
WEATHER_TOOL = {
    "name": "get_weather",
    "description": "Tell the weather in a city.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def user_message(text: str) -> dict[str, Any]:
    """The params of a completion with one message of the user's."""
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": MAX_TOKENS}


def _told(what: str, answer: Answer[Any]) -> str:
    content = answer.data.model_dump_json(by_alias=True) if isinstance(answer.data, BaseModel) else "{}"
    return f"{what}: action={answer.action}, content={content}"


@app.tool(title="Sampling", read_only=True)
async def test_sampling(ctx: Ctx, prompt: str = "Say hello.") -> str:
    """Have the client's model answer a prompt, and repeat what it said."""
    said = await ctx.sample("completion", user_message(prompt))
    return f"LLM response: {said.text}"


@app.tool(title="Sampling with tools", read_only=True)
async def sample_with_tools(ctx: Ctx, prompt: str = "What is the weather in Paris?") -> str:
    """Offer the client's model a tool, and tell why it stopped and what it said."""
    said = await ctx.sample("completion", {**user_message(prompt), "tools": [WEATHER_TOOL]})
    blocks = said.content if isinstance(said.content, list) else [said.content]
    return f"stopped by {said.stop_reason}: {', '.join(str(block.get('type')) for block in blocks)}"


@app.tool(title="Elicitation", read_only=True)
async def test_elicitation(ctx: Ctx, message: str = "Please tell who you are.") -> str:
    """Ask the user for a name and an address, both required."""
    return _told("User response", await ctx.ask("contact", message, Contact))


@app.tool(title="Elicitation with defaults", read_only=True)
async def test_elicitation_sep1034_defaults(ctx: Ctx) -> str:
    """Show a form with a text, two numbers, a choice and a switch that are filled in already."""
    return _told("Elicitation completed", await ctx.ask("defaults", "Please review these values.", Defaults))


@app.tool(title="Elicitation with choices", read_only=True)
async def test_elicitation_sep1330_enums(ctx: Ctx) -> str:
    """Show a form with every kind of choice: one or several, with titles or without."""
    return _told("Elicitation completed", await ctx.ask("choices", "Please choose.", Choices))


@app.tool(title="Elicitation with restrictions", read_only=True)
async def elicit_every_field(ctx: Ctx) -> str:
    """Show a form with formats, lengths, ranges, and a choice of one or two out of three."""
    return _told("Elicitation completed", await ctx.ask("profile", "Please describe yourself.", Everything))


@app.tool(title="Elicitation of a visit", read_only=True)
async def elicit_visit(ctx: Ctx, url: str = "https://example.com/consent") -> str:
    """Ask the user to visit a page, for what must not pass through the client."""
    answer = await ctx.ask_to_visit("visit", "Please give your consent on this page.", url)
    if answer.action != "accept":
        raise ToolError(f"the user chose to {answer.action}")
    return "The user has opened the page."


@app.tool(title="Progress, then elicitation", read_only=True)
async def test_streaming_elicitation(ctx: Ctx) -> str:
    """Report progress, then ask the user, on a stream that has begun."""
    await ctx.progress(1, 2, "about to ask")
    answer = await ctx.ask("contact", "Please tell who you are.", Contact)
    await ctx.progress(2, 2, "answered")
    return _told("User response", answer)


@app.tool(title="Show the roots", read_only=True)
async def show_roots(ctx: Ctx) -> list[str]:
    """Ask the client for its roots and list their URIs."""
    return [root.uri for root in await ctx.roots()]

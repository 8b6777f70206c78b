"""Prompts: plain, with completed arguments, with a resource or a picture inside, and one that asks the user."""

from typing import Annotated, Any

from pydantic import Field

from shared import EmbeddedResource, Features, ImageContent, PromptMessage, TextContent, TextResourceContents

from . import Ctx
from .answers import PNG
from .schemas import Background

features = Features[None]()

ARGUMENTS = {"arg1": ("test1", "test2", "testing", "other"), "arg2": ("one", "two", "three")}


@features.prompt(title="Simple prompt")
async def test_simple_prompt() -> str:
    """One message of text."""
    return "This is a simple prompt for testing."


@features.prompt(title="Prompt with arguments")
async def test_prompt_with_arguments(
    arg1: Annotated[str, Field(description="First test argument")],
    arg2: Annotated[str, Field(description="Second test argument")],
) -> str:
    """A message with two arguments in it, both of which can be completed."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@features.prompt(title="Prompt with a resource")
async def test_prompt_with_embedded_resource(
    resourceUri: Annotated[str, Field(description="URI of the resource to embed")],  # noqa: N803 - the suite's name
) -> list[EmbeddedResource | TextContent]:
    """A resource at the given URI, and a request to process it."""
    text = "Embedded resource content for testing."
    return [
        EmbeddedResource(resource=TextResourceContents(uri=resourceUri, mime_type="text/plain", text=text)),
        TextContent(text="Please process the embedded resource above."),
    ]


@features.prompt(title="Prompt with an image")
async def test_prompt_with_image() -> list[ImageContent | TextContent]:
    """An image, and a request to analyze it."""
    return [ImageContent.of(PNG, "image/png"), TextContent(text="Please analyze the image above.")]


@features.prompt(title="Prompt with both roles")
async def conversation_prompt() -> list[PromptMessage]:
    """A conversation of three messages; the second is from the assistant."""
    lines = ("Is anyone there?", "Yes, go on.", "Then let us begin.")
    roles: tuple[Any, ...] = ("user", "assistant", "user")
    return [PromptMessage(role=role, content=TextContent(text=line)) for role, line in zip(roles, lines, strict=True)]


@features.prompt(title="Prompt that asks back")
async def test_input_required_result_prompt(ctx: Ctx) -> str:
    """Ask the user for the context before the prompt is made, under the key `user_context`."""
    answer = await ctx.ask("user_context", "What context should the prompt use?", Background)
    return f"Answer in this context: {answer.data.context}" if answer.data is not None else "Answer as you like."


def _add_completion(name: str) -> None:
    @features.completes("prompt", "test_prompt_with_arguments", name)
    async def complete(_ctx: object, typed: str, _other_arguments: object) -> list[str]:
        return [value for value in ARGUMENTS[name] if value.startswith(typed)]


for _name in ARGUMENTS:
    _add_completion(_name)

"""Answers of every kind: each content block, several at once, structured data, and text of a requested size."""

import base64
from typing import Annotated

from pydantic import BaseModel, Field

from shared import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    Data,
    EmbeddedResource,
    Features,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from . import Ctx

features = Features[None]()

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""One translucent green pixel."""

WAV = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==")
"""One silent sample."""

PATTERN = "0123456789abcdef"


class Weather(BaseModel):
    """Made-up weather."""

    city: str
    degrees: float
    conditions: list[str]


class Client(BaseModel):
    """A client's description of itself."""

    info: dict[str, object] | None
    capabilities: dict[str, object]


@features.tool(title="Simple text", read_only=True)
async def test_simple_text() -> str:
    """Answer with one block of text."""
    return "This is a simple text response for testing."


@features.tool(title="Image", read_only=True)
async def test_image_content() -> ImageContent:
    """Answer with an image of one pixel."""
    return ImageContent.of(PNG, "image/png")


@features.tool(title="Audio", read_only=True)
async def test_audio_content() -> AudioContent:
    """Answer with a sound of one sample, or with words in versions without audio."""
    return AudioContent.of(WAV, "audio/wav")


@features.tool(title="Embedded resource", read_only=True)
async def test_embedded_resource() -> EmbeddedResource:
    """Answer with a resource inside the result."""
    text = "This is an embedded resource content."
    return EmbeddedResource(
        resource=TextResourceContents(uri="test://embedded-resource", mime_type="text/plain", text=text)
    )


@features.tool(title="Several kinds of content", read_only=True)
async def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Answer with text, an image and a resource."""
    resource = TextResourceContents(
        uri="test://mixed-content-resource", mime_type="application/json", text='{"test":"data","value":123}'
    )
    return [
        TextContent(text="Multiple content types test:"),
        ImageContent.of(PNG, "image/png"),
        EmbeddedResource(resource=resource),
    ]


@features.tool(title="Every kind of content", read_only=True)
async def all_content() -> list[TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink]:
    """Answer with every kind of block, including a link and annotations."""
    for_people = Annotations(audience=["user"], priority=0.9, last_modified="2026-01-01T00:00:00Z")
    text = TextResourceContents(uri="test://static-text", mime_type="text/plain", text="Text of a resource.")
    return [
        TextContent(text="Text for people.", annotations=for_people),
        TextContent(text="Text for the model.", annotations=Annotations(audience=["assistant"], priority=0.1)),
        ImageContent.of(PNG, "image/png"),
        AudioContent.of(WAV, "audio/wav"),
        EmbeddedResource(resource=text),
        EmbeddedResource(resource=BlobResourceContents.of("test://static-binary", PNG, "image/png")),
        ResourceLink(uri="test://static-text", name="static-text", mime_type="text/plain"),
    ]


@features.tool(title="Structured answer", read_only=True)
async def structured_answer(city: str = "Utopia") -> Data[Weather]:
    """Answer with data under an output schema, and the same facts as text."""
    weather = Weather(city=city, degrees=21.5, conditions=["sunny", "calm"])
    return Data(weather, f"{city}: {weather.degrees} degrees, {' and '.join(weather.conditions)}")


@features.tool(title="Result with _meta", read_only=True)
async def result_with_meta() -> CallToolResult:
    """Answer with a result that has a custom key in `_meta`."""
    return CallToolResult(content=[TextContent(text="See my _meta.")], meta={"example.com/answered-by": "everything"})


@features.tool(title="Echo", read_only=True)
async def echo(text: str) -> str:
    """Echo the text: any length, any characters."""
    return text


@features.tool(title="Large answer", read_only=True)
async def large_answer(
    size: Annotated[int, Field(ge=0, le=100_000_000, description="bytes of text")] = 100_000,
) -> str:
    """Answer with the given number of bytes of text, or with an error if it exceeds the limit for one result."""
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


@features.tool(title="Show the client", read_only=True)
async def show_client(ctx: Ctx) -> Client:
    """Answer with the client's name and the capabilities that it declared."""
    return Client(info=ctx.peer.info, capabilities=ctx.peer.capabilities)

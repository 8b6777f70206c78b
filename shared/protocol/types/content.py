"""Content blocks: the parts of tool results and prompt messages. Binary data is base64 text."""

import base64
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field

from .base import Annotations, Icon, Integer, Items, Meta, Wire


class Content(Wire):
    """The common fields of content blocks. A subclass with its own `type` is a custom kind of content. A tool may
    return it, directly or in a list, but it can't be a field of a model such as `CallToolResult`, which accept only
    `ContentBlock`."""

    annotations: Annotations | None = None
    meta: Meta | None = Field(default=None, alias="_meta")


class TextContent(Content):
    """Text for the model."""

    type: Literal["text"] = "text"
    text: str


class _Media(Content):
    data: str
    mime_type: str

    @classmethod
    def of(cls, data: bytes, mime_type: str) -> Self:
        """Return the block for these bytes."""
        fields: dict[str, Any] = {"data": base64.b64encode(data).decode("ascii"), "mime_type": mime_type}
        return cls(**fields)


class ImageContent(_Media):
    """A picture."""

    type: Literal["image"] = "image"


class AudioContent(_Media):
    """Sound (since 2025-03-26)."""

    type: Literal["audio"] = "audio"


class TextResourceContents(Wire):
    """The text of a resource."""

    uri: str
    mime_type: str | None = None
    text: str
    meta: Meta | None = Field(default=None, alias="_meta")


class BlobResourceContents(Wire):
    """The bytes of a resource."""

    uri: str
    mime_type: str | None = None
    blob: str
    meta: Meta | None = Field(default=None, alias="_meta")

    @classmethod
    def of(cls, uri: str, data: bytes, mime_type: str | None = None, meta: Meta | None = None) -> Self:
        """Return the contents of the resource `uri` with these bytes."""
        return cls(uri=uri, mime_type=mime_type, blob=base64.b64encode(data).decode("ascii"), meta=meta)


ResourceContents = TextResourceContents | BlobResourceContents


class EmbeddedResource(Content):
    """A resource inside a message."""

    type: Literal["resource"] = "resource"
    resource: ResourceContents


class ResourceLink(Content):
    """A link to a resource that the client may read (since 2025-06-18)."""

    type: Literal["resource_link"] = "resource_link"
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: Integer | None = None
    icons: Items[Icon] | None = None


_KINDS = ("text", "image", "audio", "resource", "resource_link")


def _check_undefined(kind: str) -> str:
    # A block of a known type comes here if the model of that type has refused it.
    if kind in _KINDS:
        raise ValueError("a block of this type lacks a required field")
    return kind


class OtherContent(Content):
    """A block of a type that the protocol does not define; its fields are in `model_extra`."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, AfterValidator(_check_undefined)]


ContentBlock = Annotated[
    Annotated[
        TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink, Field(discriminator="type")
    ]
    | OtherContent,
    Field(union_mode="left_to_right"),
]

"""The common base of all wire types."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

Meta = dict[str, Any]
"""The `_meta` of a message or an object, whose keys are `name` or `prefix/name` (2026-07-28, Basic Protocol, General
Fields). The constants below are the keys that the protocol defines."""

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"

Role = Literal["user", "assistant"]

Item = TypeVar("Item")
Items = Annotated[list[Item], Field(fail_fast=True)]
"""A list whose validation stops at the first error: collecting a million errors would delay all other messages."""


Integer = Annotated[
    int, BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
]
"""An integer as in JSON Schema: 3, and also 3.0, from programs that only have floats."""


class Wire(BaseModel):
    """An object on the wire. Unknown keys are ignored: schemas of the protocol are open."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, defer_build=True, extra="ignore", strict=True
    )

    def to_wire(self) -> dict[str, Any]:
        """Return this object as JSON-serializable values under its wire names, without fields that are None."""
        # `model_dump` would take twice as long, because it checks a dozen options first.
        wire: dict[str, Any] = self.__pydantic_serializer__.to_python(
            self, mode="json", by_alias=True, exclude_none=True
        )
        return wire


class Params(Wire):
    """The params of a request or a notification."""

    meta: Meta = Field(default_factory=dict, alias="_meta")


class Icon(Wire):
    """A picture for user interfaces (since 2025-11-25). `src` is its URL, which may be a `data:` URL."""

    src: str
    mime_type: str | None = None
    sizes: Items[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Annotations(Wire):
    """Hints on how to use or show an object. `last_modified` is a time in ISO 8601 (since 2025-06-18)."""

    audience: Items[Role] | None = None
    priority: float | None = Field(default=None, ge=0, le=1)
    last_modified: str | None = None


class Implementation(Wire):
    """The name and version of a client or server; the other fields are for display."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: list[Icon] | None = None


def describe_first_error(error: ValidationError) -> str:
    """Return the message of the first validation error, after its path, with dots between names and indexes."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def locate_first_error(error: ValidationError, value: Any) -> tuple[str, str]:
    """Return the path in `value` to the first error, with dots between names and indexes, and the message of the
    error. The path in the exception also contains the names of the models of a union; they are left out here."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path: list[str] = []
    for index, part in enumerate(first["loc"], 1):
        try:
            value = value[part]
        except (KeyError, TypeError):
            if index < len(first["loc"]) or first["type"] != "missing":
                continue
        path.append(str(part))
    return ".".join(path), first["msg"]

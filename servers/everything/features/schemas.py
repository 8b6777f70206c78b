"""Schemas of forms for the user, and of unusual arguments.

A form is a model, and its fields define how they are shown. Arguments have schema keywords that must reach the client
intact, or are repeated in headers.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from shared import Features

features = Features[None]()

CONTACT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


class Name(BaseModel):
    """One field."""

    name: str


class Confirmation(BaseModel):
    """A yes or no."""

    ok: bool


class Colour(BaseModel):
    """A color."""

    color: str


class Background(BaseModel):
    """What a prompt should know."""

    context: str


class Contact(BaseModel):
    """Two text fields."""

    username: Annotated[str, Field(description="User's response")]
    email: Annotated[str, Field(description="User's email address")]


class Defaults(BaseModel):
    """One field of each kind, filled in already (SEP-1034)."""

    name: Annotated[str, Field(description="User name")] = "John Doe"
    age: Annotated[int, Field(description="User age")] = 30
    score: Annotated[float, Field(description="User score")] = 95.5
    status: Annotated[Literal["active", "inactive", "pending"], Field(description="User status")] = "active"
    verified: Annotated[bool, Field(description="Verification status")] = True


_TITLED = [
    {"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(["First", "Second", "Third"], 1)
]
_LEGACY = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]}
_Option = Literal["option1", "option2", "option3"]
_Value = Literal["value1", "value2", "value3"]


class Choices(BaseModel):
    """A field of each kind of choice (SEP-1330)."""

    model_config = ConfigDict(alias_generator=to_camel)

    untitled_single: _Option
    titled_single: Annotated[_Value, WithJsonSchema({"type": "string", "oneOf": _TITLED})]
    legacy_enum: Annotated[Literal["opt1", "opt2", "opt3"], WithJsonSchema({"type": "string", **_LEGACY})]
    untitled_multi: list[_Option]
    titled_multi: Annotated[list[_Value], WithJsonSchema({"type": "array", "items": {"anyOf": _TITLED}})]


class Everything(BaseModel):
    """Every restriction that a field may have."""

    nickname: Annotated[str, Field(min_length=2, max_length=20, title="Nickname")]
    email: Annotated[str, Field(json_schema_extra={"format": "email"})]
    homepage: Annotated[str, Field(json_schema_extra={"format": "uri"})] = "https://example.com"
    birthday: Annotated[str, Field(json_schema_extra={"format": "date"})] = "2000-01-01"
    fingers: Annotated[int, Field(ge=0, le=20)] = 10
    height: Annotated[float, Field(ge=0.3, le=3, description="in metres")] = 1.7
    newsletter: bool = False
    colours: Annotated[list[Literal["red", "green", "blue"]], Field(min_length=1, max_length=2)]


@features.tool(title="JSON Schema 2020-12", read_only=True, input_schema=CONTACT_SCHEMA)
async def json_schema_2020_12_tool(
    name: str | None = None,
    address: dict[str, str] | None = None,
    contactMethod: str | None = None,  # noqa: N803 - as the schema has it
    phone: str | None = None,
    email: str | None = None,
) -> str:
    """Take arguments that match a schema with references, alternatives and conditions."""
    arguments = {"name": name, "address": address, "contactMethod": contactMethod, "phone": phone, "email": email}
    return f"given: {', '.join(key for key, value in arguments.items() if value is not None) or 'nothing'}"


@features.tool(title="Argument in a header", read_only=True)
async def test_x_mcp_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "<none>",
    priority: Annotated[int | None, Field(json_schema_extra={"x-mcp-header": "Priority"})] = None,
) -> str:
    """Take arguments that HTTP clients in version 2026-07-28 repeat in `Mcp-Param-Region` and `-Priority`."""
    return f"region={region}, priority={priority}"

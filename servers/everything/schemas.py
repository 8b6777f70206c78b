"""Input schemas out of the ordinary: keywords that must survive the way, and arguments repeated in headers."""

from typing import Annotated, Any

from pydantic import Field

from .app import app

__all__ = ["CONTACT_SCHEMA", "json_schema_2020_12_tool", "test_x_mcp_header"]

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


@app.tool(title="JSON Schema 2020-12", read_only=True, input_schema=CONTACT_SCHEMA)
async def json_schema_2020_12_tool(
    name: str | None = None,
    address: dict[str, str] | None = None,
    contactMethod: str | None = None,  # noqa: N803 - as the schema has it
    phone: str | None = None,
    email: str | None = None,
) -> str:
    """Take arguments under a schema with references, alternatives and conditions."""
    given = {"name": name, "address": address, "contactMethod": contactMethod, "phone": phone, "email": email}
    return f"given: {', '.join(key for key, value in given.items() if value is not None) or 'nothing'}"


@app.tool(title="Argument in a header", read_only=True)
async def test_x_mcp_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "<none>",
    priority: Annotated[int | None, Field(json_schema_extra={"x-mcp-header": "Priority"})] = None,
) -> str:
    """Take arguments that HTTP clients of 2026-07-28 repeat in `Mcp-Param-Region` and `-Priority`."""
    return f"region={region}, priority={priority}"

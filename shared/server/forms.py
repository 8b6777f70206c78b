"""A pydantic model as the flat form that elicitation allows (2025-11-25, Elicitation, Requested Schema)."""

from typing import Any

from pydantic import BaseModel

from ..errors import DeclarationError
from .functions import JsonSchema

__all__ = ["form_schema"]

_KINDS = ("string", "number", "integer", "boolean")


def form_schema(form: type[BaseModel]) -> dict[str, Any]:
    """The schema of `form`. Raises DeclarationError for fields that no form can show: they must be strings,
    numbers, booleans, or choices of strings, one or several."""
    schema = form.model_json_schema(schema_generator=JsonSchema)
    fields = {name: _field(form, name, field) for name, field in schema.get("properties", {}).items()}
    made: dict[str, Any] = {"type": "object", "properties": fields}
    if schema.get("required"):
        made["required"] = schema["required"]
    return made


def _field(form: type[BaseModel], name: str, field: dict[str, Any]) -> dict[str, Any]:
    if "const" in field:
        field = {"type": "string", "enum": [field.pop("const")], **field}
    items = field.get("items", {})
    several = field.get("type") == "array" and ("enum" in items or "anyOf" in items)
    if field.get("type") in _KINDS or several:
        return field
    raise DeclarationError(f"{form.__name__}.{name}: a form holds strings, numbers, booleans and choices only")

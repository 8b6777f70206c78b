"""A pydantic model as the flat form that elicitation allows (2025-11-25, Elicitation, Requested Schema)."""

from typing import Any

from pydantic import BaseModel

from ..errors import DeclarationError
from .functions import JsonSchema

__all__ = ["form_schema"]

_KINDS = ("string", "number", "integer", "boolean")
_FORMATS = (None, "email", "uri", "date", "date-time")
_TEXT = {"format", "minLength", "maxLength", "enum", "enumNames", "oneOf"}
_NUMBER = {"minimum", "maximum"}
_SEVERAL = {"items", "minItems", "maxItems"}
_KEYWORDS = {"type", "title", "description", "default"} | _TEXT | _NUMBER | _SEVERAL


def form_schema(form: type[BaseModel]) -> dict[str, Any]:
    """The schema of `form`. Raises DeclarationError for fields that no form can show: they must be strings,
    numbers, booleans, or choices of strings, one or several, and bounds must be inclusive."""
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
    if field.get("type") not in _KINDS and not several:
        raise DeclarationError(f"{form.__name__}.{name}: a form holds strings, numbers, booleans and choices only")
    strange = sorted(field.keys() - _KEYWORDS)
    if strange or field.get("format") not in _FORMATS:
        raise DeclarationError(f"{form.__name__}.{name}: no form shows {', '.join(strange) or field['format']!r}")
    return field

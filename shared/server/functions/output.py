"""Data that a tool returns, checked against what it declares: what breaks its schema is never sent (2026-07-28,
Server Features, Tools, Output Schema).

What is checked is the JSON that is to be sent, since pydantic looks into no model again that somebody has made, and
dumps None in any place. A type that can't be read back from its JSON, as one with validators or serializers of its
own, is checked as a value, and by what pydantic's serializer objects to.
"""

import logging
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, get_args

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from ...errors import DeclarationError, ToolError
from ...protocol.wire.jsonrpc import json_of
from .function import output_schema

log = logging.getLogger("shared.server.functions.output")

_SEEN_WHOLE = {
    *("any", "bool", "dict", "int", "list", "literal", "none", "nullable", "str", "tuple", "union"),
    *("typed-dict", "typed-dict-field", None),
}
"""Parts of a schema that pydantic looks into whenever it validates a value. A float may be none of JSON's numbers."""
_OWN_WORDS = ("value_error", "assertion_error")
"""Kinds of errors whose text is that of a validator of the author's, which may have values in it."""


class Output:
    """Values of the type that a tool declares."""

    def __init__(self, declared: Any, what: str) -> None:
        self._declared = declared
        self._what = what

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the data. Raises DeclarationError for a type that can't be sent."""
        return output_schema(self._adapter)

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        try:
            return TypeAdapter(self._declared)
        except PydanticUserError as error:
            raise DeclarationError(f"{self._what}: its return type can't be sent: {error}") from error

    @cached_property
    def dump(self) -> Callable[[Any], tuple[Any, bytes]]:
        """A function that gives a value as JSON-ready data, and its JSON. It raises ToolError for what is no value of
        the type."""
        parts = list(_walk(self._adapter.core_schema))
        if not all(map(_reads_back, parts)):
            return self._dump_own
        return self._dump_value if all(part.get("type") in _SEEN_WHOLE for part in parts) else self._dump_made

    def _dump_value(self, value: Any) -> tuple[Any, bytes]:
        # The validator itself: the methods of an adapter cost as much again for a small value.
        try:
            self._adapter.validator.validate_python(value, strict=True)
            data = self._adapter.serializer.to_python(value, mode="json", by_alias=True)
            return data, json_of(data)
        except (ValidationError, PydanticSerializationError) as error:
            raise self._refusal(value, error) from None

    def _dump_made(self, value: Any) -> tuple[Any, bytes]:
        try:
            data = self._adapter.serializer.to_python(value, mode="json", by_alias=True, warnings=False)
            text = json_of(data)
            self._adapter.validator.validate_json(text, strict=True)
            return data, text
        except (ValidationError, PydanticSerializationError) as error:
            raise self._refusal(value, error) from None

    def _dump_own(self, value: Any) -> tuple[Any, bytes]:
        try:
            self._adapter.validator.validate_python(value, strict=True)
            data = self._adapter.serializer.to_python(value, mode="json", by_alias=True, warnings="error")
            return data, json_of(data)
        except (ValidationError, PydanticSerializationError) as error:
            raise self._refusal(value, error) from None

    def check(self, value: Any) -> None:
        """Raises ToolError where a value that is made of what JSON has is none of the type."""
        try:
            self._adapter.validator.validate_python(value, strict=True)
        except ValidationError as error:
            raise self._refusal(value, error) from None

    def _refusal(self, value: Any, error: ValidationError | PydanticSerializationError) -> ToolError:
        detail = ""
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = "".join(f"{part}: " for part in first["loc"])
            detail = "" if first["type"] in _OWN_WORDS else f": {place}{first['msg']}"
        return make_refusal(self._what, value, self._declared, detail)


def make_refusal(what: str, value: object, declared: Any, detail: str = "") -> ToolError:
    """The error for a value that a tool may not return, which is logged: its author has to know."""
    text = f"{what} returned {type(value).__name__}, declared {format_type(declared)}{detail}"
    log.error("%s", text)
    return ToolError(text)


def format_type(declared: Any) -> str:
    """A type as an author writes it."""
    return declared.__name__ if isinstance(declared, type) and not get_args(declared) else str(declared)


def _walk(schema: object) -> Iterator[dict[str, Any]]:
    """All parts of a schema of pydantic's core, each a mapping."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield part
            pending += [inner for key, inner in part.items() if key != "metadata"]
        elif isinstance(part, list | tuple):
            pending += part


def _reads_back(part: dict[str, Any]) -> bool:
    """Whether JSON that this part of a schema writes is what it reads."""
    is_own = str(part.get("type")).startswith("function-") or "serialization" in part or part.get("computed_fields")
    has_names = part.get("serialization_alias") != part.get("validation_alias")
    is_enum_key = part.get("type") == "dict" and part.get("keys_schema", {}).get("type") == "enum"
    return not (is_own or has_names or is_enum_key or part.get("serialization_exclude"))

"""Validates the data that a tool returns against its declared type, since data that violates the output schema must
not be sent (2026-07-28, Server Features, Tools, Output Schema).

Usually the JSON is validated: pydantic does not revalidate an existing instance of a model, and it serializes None
even where the type does not allow it. The values of some types, such as one with custom validators or serializers,
can't be read back from their JSON. They are validated as Python values, and warnings of pydantic's serializer count
as errors.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from inspect import isgenerator
from math import isfinite
from typing import Any

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from ...errors import DeclarationError, ToolError
from ...protocol.wire.jsonrpc import json_of
from .annotations import format_type
from .function import first_sentence, output_schema

log = logging.getLogger("shared.server.functions.output")

_VALIDATED_TYPES = {
    *("any", "bool", "dict", "int", "list", "literal", "none", "nullable", "str", "tuple", "union"),
    *("typed-dict", "typed-dict-field", None),
}
"""The kinds of parts in pydantic's core schema that it validates completely in a Python value. `float` is not one of
them, since it allows NaN and Infinity, which JSON does not have."""
_TEXT_OR_NUMBER = ("decimal", "complex")
"""The kinds of parts that pydantic also reads from a number, although their JSON Schema is a string."""
_NAME_KEYED = ("fields", "choices")
"""The keys in a core schema whose value is a dict with names that the author has chosen, of which one may be
`type`."""
_NO_NUMBER = "JSON has no NaN and no Infinity; return None there, and declare it"
_FAULTS = (ValidationError, PydanticSerializationError, UnicodeDecodeError)
"""The errors for a value that can't be sent; the last one occurs for bytes that are not UTF-8."""
_AUTHOR_ERRORS = ("value_error", "assertion_error")
"""The kinds of errors whose message comes from a validator of the author, and may contain values."""


class Output:
    """The declared return type of a tool."""

    def __init__(self, declared: Any, what: str) -> None:
        self._declared = declared
        self._what = what

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the data. Raises DeclarationError if the type has none."""
        try:
            return output_schema(self._adapter)
        except PydanticUserError as error:
            raise DeclarationError(f"{self._what}: its return type has no schema: {first_sentence(error)}") from error

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        try:
            return TypeAdapter(self._declared)
        except PydanticUserError as error:
            raise DeclarationError(
                f"{self._what}: its return type can't be serialized: {first_sentence(error)}"
            ) from error

    @cached_property
    def dump(self) -> Callable[[Any], tuple[Any, bytes]]:
        """A function that returns a value as JSON-serializable data, and as JSON. It raises ToolError for a value of
        another type."""
        parts = list(_iterate_parts(self._adapter.core_schema))
        if not all(map(_can_read_back, parts)):
            return self._dump_custom
        kinds = {part.get("type") for part in parts}
        if not kinds.isdisjoint(_TEXT_OR_NUMBER):
            return self._dump_normalized
        return self._dump_value if kinds <= _VALIDATED_TYPES else self._dump_checked

    def _dump_value(self, value: Any) -> tuple[Any, bytes]:
        """Dump a value that pydantic validates completely as a Python value, without its JSON."""
        # The methods of the adapter itself would double the cost for a small value.
        try:
            self._adapter.validator.validate_python(value, strict=True)
            data = self._adapter.serializer.to_python(value, mode="json", by_alias=True)
            return data, json_of(data)
        except _FAULTS as error:
            raise self._refusal(value, error) from None

    def _dump_checked(self, value: Any) -> tuple[Any, bytes]:
        """Dump a value, and validate its JSON."""
        data = None
        try:
            data = self._adapter.serializer.to_python(value, mode="json", by_alias=True, warnings=False)
            text = json_of(data)
            self._adapter.validator.validate_json(text, strict=True)
            return data, text
        except _FAULTS as error:
            raise self._refusal(value, error, data) from None

    def _dump_normalized(self, value: Any) -> tuple[Any, bytes]:
        """Dump a value after reading it back from its JSON, so that numbers become strings, as in the schema."""
        _, text = self._dump_checked(value)
        return self._dump_checked(self._adapter.validator.validate_json(text, strict=True))

    def _dump_custom(self, value: Any) -> tuple[Any, bytes]:
        """Dump a value whose type can't be read back from its JSON."""
        try:
            self._adapter.validator.validate_python(value, strict=True)
            data = self._adapter.serializer.to_python(value, mode="json", by_alias=True, warnings="error")
            return data, json_of(data)
        except _FAULTS as error:
            raise self._refusal(value, error) from None

    def check(self, value: Any) -> None:
        """Raise ToolError if a JSON-serializable value does not have the declared type."""
        try:
            self._adapter.validator.validate_python(value, strict=True)
        except ValidationError as error:
            raise self._refusal(value, error) from None

    def _refusal(
        self, value: Any, error: ValidationError | PydanticSerializationError | UnicodeDecodeError, data: Any = None
    ) -> ToolError:
        """Return the ToolError for `value`. `data` is the JSON-serializable form, if that was validated."""
        detail = ": bytes are sent as UTF-8 text; encode others" if isinstance(error, UnicodeDecodeError) else ""
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            location = "".join(f"{part}: " for part in first["loc"])
            # A location may also contain names of members of unions, which lead nowhere and are skipped.
            for key in first["loc"]:
                with suppress(LookupError, TypeError):
                    data = data[key]
            reason = _NO_NUMBER if isinstance(data, float) and not isfinite(data) else first["msg"]
            detail = "" if first["type"] in _AUTHOR_ERRORS else f": {location}{reason}"
        return make_refusal(self._what, value, self._declared, detail)


def make_refusal(what: str, value: object, declared: Any, detail: str = "") -> ToolError:
    """Return the error for a value that a tool may not return, after logging it for the author."""
    if isgenerator(value):
        detail = "; use list(...)"
    text = f"{what} returned {type(value).__name__}, but declares {format_type(declared)}{detail}"
    log.error("%s", text)
    return ToolError(text)


def _iterate_parts(schema: object) -> Iterator[dict[str, Any]]:
    """Yield all parts of a core schema of pydantic, each of which is a dict."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield part
            # A dict with names that the author has chosen is not a part itself, only its values are.
            pending += [
                list(inner.values()) if key in _NAME_KEYED and isinstance(inner, dict) else inner
                for key, inner in part.items()
                if key != "metadata"
            ]
        elif isinstance(part, list | tuple):
            pending += part


def _can_read_back(part: dict[str, Any]) -> bool:
    """Return True if this part of a core schema accepts the JSON that it produces."""
    is_custom = (
        str(part.get("type")).startswith("function-") or "serialization" in part or part.get("computed_fields")
    )
    has_two_names = part.get("serialization_alias") != part.get("validation_alias")
    is_enum_key = part.get("type") == "dict" and part.get("keys_schema", {}).get("type") == "enum"
    return not (is_custom or has_two_names or is_enum_key or part.get("serialization_exclude"))

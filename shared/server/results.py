"""Converts the return values of tools' functions to results of `tools/call`.

There are two kinds of results. If **text is the payload**, the function returns a string or content blocks. The
result has only `content`, and the tool has no output schema. If **data is the payload**, the function returns a
model, a dataclass, a typed dict, a list or a number. The result has the data in `structuredContent`, which the output
schema describes, and the same facts as text in `content`, since some hosts show the model only one of the two. A
function that returns `Data(value, text)` chooses that text. `Text(text, meta)` is a text payload with `_meta` for the
client program.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar, get_args, get_origin

from pydantic_core import PydanticSerializationError, to_json

from ..errors import DeclarationError, ToolError
from ..protocol.records import record
from ..protocol.types.base import Meta, Wire
from ..protocol.types.tools import CallToolResult
from ..protocol.wire.jsonrpc import Prepared, json_of
from .functions.annotations import format_type, is_content, is_data, is_sendable
from .functions.output import Output, make_refusal

Value = TypeVar("Value")

MAX_VIEW = 100_000
"""Maximum size, in bytes of JSON, of `_meta.view` in a result. It is additional data for the tool's app (see
`extensions/apps.py`), which the model does not see."""
_MAX_ESCAPE_BYTES = 6
"""Maximum number of bytes that one character of text takes in JSON."""


@record
class Data(Generic[Value]):
    """Data as the payload, with its text form, which must contain the same facts."""

    value: Value
    text: str
    is_json: bool = False
    """True if `value` consists of JSON types only, so that it needs no conversion."""


@record
class Text:
    """Text as the payload, with the `_meta` of the result, which the client program reads, not the model."""

    text: str
    meta: Meta


class Result:
    """Converts the return values of one tool's function to results."""

    def __init__(self, returns: Any, what: str) -> None:
        inner = get_args(returns)[0] if get_origin(returns) is Data else returns
        if returns is None:
            examples = "such as `-> str` or `-> None`"
            raise DeclarationError(f"{what} needs a return annotation that declares its result, {examples}")
        if inner is returns and returns is not Text and not is_sendable(returns):
            name = format_type(returns)
            raise DeclarationError(f"{what} can't return {name}: return text, content blocks, or typed data")
        self._what = what
        self._returns = returns
        self._output = Output(inner, what)
        self._is_data = returns is not Text and (inner is not returns or is_data(returns))
        self._is_text = not self._is_data and is_content("", returns)

    @cached_property
    def schema(self) -> dict[str, Any] | None:
        """The output schema; None if text is the payload. Raises DeclarationError for a type that has no schema."""
        return self._output.schema if self._is_data else None

    def to_wire(self, value: Any, limit: int, view: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return `value` as a result in the form of the newest version, with `view` if there is room for it. Raises
        ToolError if the value does not have the declared type, or if the result takes more than `limit` bytes as
        JSON: hosts drop larger results."""
        if view is not None:
            return add_view(self.to_wire(value, limit), view, limit)
        # A text that would fit even if each character needed the longest escape is not encoded to measure it.
        if self._is_text and isinstance(value, str) and len(value) * _MAX_ESCAPE_BYTES < limit:
            return {"content": [{"type": "text", "text": value}]}
        if isinstance(value, Text) and (len(value.text) + len(str(value.meta))) * _MAX_ESCAPE_BYTES < limit:
            return {"content": [{"type": "text", "text": value.text}], "_meta": value.meta}
        return limit_size(self._build(value), limit)

    def _build(self, value: Any) -> dict[str, Any]:
        if isinstance(value, CallToolResult):
            if self._is_data and not value.is_error:
                raise make_refusal(self._what, value, self._returns)
            return {"content": [], **value.to_wire()}
        if not self._is_data:
            if isinstance(value, Text):
                return {"content": content_of(value.text), "_meta": value.meta}
            try:
                if is_content(value, self._returns):
                    return {"content": _any_to_content(value)}
            except PydanticSerializationError:
                pass
            raise make_refusal(self._what, value, self._returns)
        if not isinstance(value, Data):
            data, text = self._output.dump(value)
            return {"content": [{"type": "text", "text": text.decode()}], "structuredContent": data}
        if value.is_json:
            self._output.check(value.value)
            data = value.value
        else:
            data, _ = self._output.dump(value.value)
        return {"content": [{"type": "text", "text": value.text}], "structuredContent": data}


def content_of(value: Any) -> list[dict[str, Any]]:
    """Return the content blocks of a string, a content block, a list of these, or None, which has no blocks."""
    match value:
        case str():
            return [{"type": "text", "text": value}]
        case None:
            return []
        case Wire():
            return [value.to_wire()]
        case list() | tuple():
            return [block for item in value for block in content_of(item)]
        case _:
            raise TypeError(f"{type(value).__name__} is not content; return text, content blocks, or typed data")


def _any_to_content(value: Any) -> list[dict[str, Any]]:
    """Return the content blocks of a value whose declared type is or contains `Any`. Data becomes JSON text."""
    if isinstance(value, list | tuple) and any(isinstance(item, Wire) for item in value):
        return [block for item in value for block in _any_to_content(item)]
    try:
        return content_of(value)
    except TypeError:
        return [{"type": "text", "text": to_json(value).decode()}]


def limit_size(result: dict[str, Any], limit: int) -> dict[str, Any]:
    """Return the `result` of a tool together with its JSON. Raises ToolError if that has more than `limit` bytes."""
    prepared = Prepared(result)
    size = len(prepared.json)
    if size > limit:
        raise ToolError(
            f"the result has {size:,} bytes, which exceeds the limit of {limit:,} per call; request a part of it"
        )
    return prepared


def add_view(result: dict[str, Any], view: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """Return the `result` of a tool, with `view` in its `_meta` if it then has at most `limit` bytes."""
    size = len(json_of(view))
    # The app is optional, so its data is left out rather than the result.
    if size > MAX_VIEW or size + len(json_of(result)) > limit:
        return result
    return {**result, "_meta": {**result.get("_meta", {}), "view": view}}


def drop_large_view(result: dict[str, Any], limit: int) -> dict[str, Any]:
    """Return the `result` of a tool without the `view` in its `_meta` if it has more than `limit` bytes with it."""
    meta = result.get("_meta")
    if not isinstance(meta, dict) or "view" not in meta or len(json_of(result)) <= limit:
        return result
    other_meta = {name: value for name, value in meta.items() if name != "view"}
    return {
        **{name: value for name, value in result.items() if name != "_meta"},
        **({"_meta": other_meta} if other_meta else {}),
    }

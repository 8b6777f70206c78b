"""A plain typed function, read once: how its arguments are checked, what its schemas are, how its value is sent.

Arguments are validated as strict JSON: `"5"` is no integer, but a string may become a `Path` or a `date`, since
JSON has no other way to write them. What is refused is tried once more in another form of the same meaning (see
`argument_coercion`). Unknown arguments are errors that name the nearest known one.

What the signature tells is read when a decorator runs. The model of the arguments is made when it is first needed:
a host waits for every server it starts, and until it has its first answer it asks for none of this.
"""

import inspect
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import is_dataclass
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import from_json, to_json
from typing_extensions import is_typeddict

from ...errors import DeclarationError, InvalidArguments
from ...protocol.types.content import Content
from ...protocol.types.tools import CallToolResult
from .argument_coercion import coerce
from .argument_errors import MOST_ERRORS, describe, shortened
from .inline_definitions import inline_definitions
from .threads import in_thread

_UNIONS = (Union, UnionType, Annotated)
_CONTENT = (Content, CallToolResult)
_TEXT = (str, NoneType)
_AS_IN_JSON = (str, int, bool, NoneType)
_COERCIONS = 4
"""How often arguments are put into another form: an array that comes as a string may hold one that does, too."""
_ANYTHING = {"anyOf": [{"type": kind} for kind in ("string", "number", "boolean", "object", "array", "null")]}


class JsonSchema(GenerateJsonSchema):
    """JSON Schema 2020-12 without what costs tokens and says nothing: titles made up from names, docstrings of
    models, the null that an optional argument takes besides being left out, and that arguments allow no others. Some
    hosts can't read the latter (googleapis/python-genai#2393), and a call that has others is told so."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False

    def nullable_schema(self, schema: Any) -> Any:
        """For arguments, the schema of what is not null: whoever means null leaves the argument out. For results, a
        choice between two schemas, because some hosts take a list of types for no type at all."""
        inner = self.generate_inner(schema["schema"])
        return {"anyOf": [inner, {"type": "null"}]} if self.mode == "serialization" else inner

    def any_schema(self, schema: Any) -> Any:
        """For results, what any value may be: some hosts take a schema that says nothing for that of no value."""
        return deepcopy(_ANYTHING) if self.mode == "serialization" else super().any_schema(schema)

    def dict_schema(self, schema: Any) -> Any:
        """The schema of a dictionary; that it may have any values is what most hosts read as a mere `true`."""
        made = super().dict_schema(schema)
        return {**made, "additionalProperties": True} if made.get("additionalProperties") == _ANYTHING else made

    def default_schema(self, schema: Any) -> Any:
        """The schema with its default, unless that is null."""
        made = super().default_schema(schema)
        if made.get("default", ...) is None:
            del made["default"]
        return made

    def encode_default(self, dft: Any) -> Any:
        """A default as in JSON. What is JSON already stays, without a serializer being built for it."""
        return dft if type(dft) in _AS_IN_JSON else super().encode_default(dft)

    def generate(self, schema: Any, mode: Any = "validation") -> Any:
        """The schema, without the titles and docstrings of its models, and without their word on other arguments."""
        made = super().generate(schema, mode)
        for definition in (made, *made.get("$defs", {}).values()):
            definition.pop("title", None)
            # A docstring of a model is for programmers; a model pays for each word of it in every conversation.
            definition.pop("description", None)
            if mode == "validation" and definition.get("additionalProperties") is False:
                del definition["additionalProperties"]
        return made


class ArgumentSchema(JsonSchema):
    """The same for arguments: that a switch is off, or a list empty, unless it is given, nobody needs to be told."""

    def default_schema(self, schema: Any) -> Any:
        """The schema with its default, unless that is what is meant by nothing."""
        made = super().default_schema(schema)
        default = made.get("default")
        if default is False or default in ("", [], {}):
            del made["default"]
        return made


class Function:
    """A handler's function and what is known of it."""

    def __init__(self, function: Callable[..., Any], what: str, context: type) -> None:
        self.call = function if inspect.iscoroutinefunction(function) else in_thread(function)
        self.name = getattr(function, "__name__", "")
        self._declared = function
        self.doc = inspect.cleandoc(function.__doc__ or "")
        self._what = f"{what} {self.name!r}"
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise DeclarationError(f"{self._what} yields; it must return its whole result")
        try:
            self.hints = get_type_hints(function, include_extras=True)
        except NameError as error:
            raise DeclarationError(f"{self._what}: {error}") from error
        self.returns = self.hints.pop("return", None)
        takes_context = (name for name, hint in self.hints.items() if (get_origin(hint) or hint) is context)
        self._context_name = next(takes_context, None)
        self._fields = self._parameters()

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments; its root is an object. Raises DeclarationError for a type that JSON can't
        carry."""
        return inline_definitions(self._schema_with_definitions)

    @cached_property
    def _schema_with_definitions(self) -> dict[str, Any]:
        made: dict[str, Any] = self._model.model_json_schema(schema_generator=ArgumentSchema)
        made.setdefault("properties", {})
        return made

    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in their order."""
        return tuple(self._fields)

    def required(self, name: str) -> bool:
        """Whether the argument has no default."""
        return self._model.model_fields[name].is_required()

    def description(self, name: str) -> str | None:
        """What `Field(description=...)` says of the argument."""
        return self._model.model_fields[name].description

    def bind(self, arguments: dict[str, Any], context: object = None) -> dict[str, Any]:
        """`arguments` as the function takes them, with the `context` where it wants one. Raises InvalidArguments that
        says what does not fit."""
        if len(arguments) > len(self._fields) + MOST_ERRORS:
            unknown = sum(name not in self._fields for name in arguments)
            raise InvalidArguments(self._many(arguments, unknown))
        data = to_json(arguments)
        try:
            # By way of JSON: strict Python would refuse a text for a `date`, and a list for a tuple.
            checked: BaseModel = self._model.__pydantic_validator__.validate_json(data, strict=True)
        except ValidationError as error:
            checked = self._coerced(data, error)
        bound = vars(checked)
        if self._context_name is not None:
            bound[self._context_name] = context
        return bound

    def bind_text(self, arguments: dict[str, str], context: object = None) -> dict[str, Any]:
        """Like `bind`, for arguments that are always strings: "5" may become an integer."""
        try:
            checked = self._model.model_validate_strings(arguments)
        except ValidationError as error:
            raise InvalidArguments(describe(error, self._schema_with_definitions)) from None
        bound = vars(checked)
        if self._context_name is not None:
            bound[self._context_name] = context
        return bound

    def _coerced(self, data: bytes, error: ValidationError) -> BaseModel:
        """The arguments whose JSON was refused, in a form that fits. Raises InvalidArguments where none does."""
        arguments = from_json(data)
        count = error.error_count()
        if count > MOST_ERRORS and not self._looks_coercible(arguments):
            raise InvalidArguments(self._many(arguments, count))
        for _ in range(_COERCIONS):
            if not coerce(arguments, error.errors(include_url=False, include_context=False)):
                break
            try:
                return self._model.model_validate_json(to_json(arguments), strict=True)
            except ValidationError as next_error:
                error = next_error
        raise InvalidArguments(describe(error, self._schema_with_definitions))

    def _looks_coercible(self, arguments: Any) -> bool:
        """Whether the beginning of arguments of which very many values are wrong has another form that may fit."""
        beginning = shortened(arguments, self._fields)
        try:
            self._model.model_validate_json(to_json(beginning), strict=True)
        except ValidationError as error:
            return coerce(beginning, error.errors(include_url=False, include_context=False))
        return False

    def _many(self, arguments: Any, count: int) -> str:
        """What is wrong with arguments of which `count` values are, more than can be listed."""
        try:
            self._model.model_validate_json(to_json(shortened(arguments, self._fields)), strict=True)
        except ValidationError as error:
            return f"{count:,} values are wrong, such as {describe(error, self._schema_with_definitions)}"
        return f"{count:,} values are wrong, none of them among the first; send fewer at once to see which"

    def _parameters(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, parameter in inspect.signature(self._declared).parameters.items():
            if name == self._context_name:
                continue
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise DeclarationError(f"{self._what}: {name!r} must be an ordinary parameter")
            if name not in self.hints:
                raise DeclarationError(f"{self._what}: {name!r} has no type")
            fields[name] = (self.hints[name], ... if parameter.default is parameter.empty else parameter.default)
        return fields

    @cached_property
    def _model(self) -> type[BaseModel]:
        try:
            with warnings.catch_warnings():
                # An argument may be called `schema` or `copy`, as methods of pydantic's models are.
                warnings.filterwarnings("ignore", message="Field name .* shadows an attribute")
                model = create_model(self.name, __config__=ConfigDict(extra="forbid"), **self._fields)
        except (PydanticUserError, NameError, TypeError, ValueError) as error:
            raise DeclarationError(f"{self._what}: {error}") from error
        # pydantic takes some names silently for something else, such as those that begin with an underscore.
        for name in self._fields.keys() - model.model_fields.keys():
            raise DeclarationError(f"{self._what}: an argument can't be called {name!r}")
        return model


def is_data(hint: Any) -> bool:
    """Whether values of this type are data, to be sent as structured content with a schema."""
    base = get_origin(hint) or hint
    if base in _UNIONS:
        return not _is_content(hint) and any(is_data(part) for part in get_args(hint))
    if base in (list, tuple, set, frozenset):
        return not any(_is_content(part) for part in get_args(hint))
    if _is_content(base):
        return False
    known = base in (dict, int, float, bool) or is_dataclass(base) or is_typeddict(base)
    return known or (isinstance(base, type) and issubclass(base, BaseModel))


def is_sendable(hint: Any) -> bool:
    """Whether values of this type are content or data, as far as that can be told."""
    base = get_origin(hint) or hint
    if base in (*_UNIONS, list, tuple, Literal):
        parts = get_args(hint)[:1] if base is Annotated else get_args(hint)
        return is_data(hint) or all(is_sendable(part) if base is not Literal else True for part in parts)
    return is_data(hint) or base in (Any, ...) or (isinstance(base, type) and issubclass(base, _TEXT + _CONTENT))


def _is_content(hint: Any) -> bool:
    """Whether values of this type are content for the model as they are, or may be."""
    if get_origin(hint) in _UNIONS:
        return any(_is_content(part) for part in get_args(hint))
    return hint is Any or (isinstance(hint, type) and issubclass(hint, _CONTENT))


def output_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The JSON Schema of what a function returns."""
    made = adapter.json_schema(mode="serialization", schema_generator=JsonSchema)
    root = made.pop("$ref", None)
    # A model that holds itself is a mere reference, but the root must say that it is an object (2025-06-18, Tool).
    return made if root is None else {**made["$defs"][root.removeprefix("#/$defs/")], **made}

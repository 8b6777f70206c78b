"""A declared function: its schemas, and the validation of its arguments.

Arguments are validated as strict JSON: `"5"` is not an integer, but a string may become a `Path` or a `date`, since
JSON has no other form for these. Refused values are converted to another form with the same meaning, if there is one,
and validated again (see `argument_coercion.py`). The error for an unknown argument names the most similar known one.

The signature is read when the function is declared. The pydantic model of the arguments is built at first use,
because a host waits for each server that it starts, and the first answer needs no model.
"""

import inspect
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import cached_property, partial
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticUndefined, from_json, to_json

from ...errors import DeclarationError, InvalidArguments
from ...steps import Steps, complete
from .annotations import (
    add_descriptions,
    evaluate,
    format_type,
    name_of_argument,
    remove_validators,
    replace_iterables,
)
from .argument_coercion import coerce
from .argument_errors import MAX_ERRORS, describe, shorten
from .inline_definitions import inline_definitions
from .threads import in_thread

_JSON_TYPES = (str, int, bool, NoneType)
_MAX_COERCIONS = 4
"""Maximum number of conversions of the same arguments, one after the other: an array that was sent as a string may
contain another one."""
_ANYTHING = {"anyOf": [{"type": kind} for kind in ("string", "number", "boolean", "object", "array", "null")]}


class JsonSchema(GenerateJsonSchema):
    """Generates JSON Schema 2020-12 without parts that cost tokens and are of no use to a model.

    These are titles, which repeat names; docstrings of models; null as a value of optional arguments, which can be
    left out; and `"additionalProperties": false`, which some hosts can't read (googleapis/python-genai#2393). Unknown
    arguments are refused nevertheless, with an error that names them.
    """

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False: fields have no titles."""
        return False

    def nullable_schema(self, schema: Any) -> Any:
        """Return a nullable type as `anyOf`, because some hosts do not accept a list in `type`."""
        return {"anyOf": [self.generate_inner(schema["schema"]), {"type": "null"}]}

    def any_schema(self, schema: Any) -> Any:
        """Return, for results, the choice of all types: some hosts do not understand an empty schema."""
        return deepcopy(_ANYTHING) if self.mode == "serialization" else super().any_schema(schema)

    def dict_schema(self, schema: Any) -> Any:
        """Return the schema of a dictionary. Values of any type get the schema `true`, which most hosts support."""
        result = super().dict_schema(schema)
        return {**result, "additionalProperties": True} if result.get("additionalProperties") == _ANYTHING else result

    def default_schema(self, schema: Any) -> Any:
        """Return the schema with its default, unless the default is null. Then the schema of an argument does not
        mention null either: a client leaves the argument out instead."""
        inner = schema["schema"]
        if self.mode == "validation" and schema.get("default", ...) is None and inner["type"] == "nullable":
            return self.generate_inner(inner["schema"])
        result = super().default_schema(schema)
        if result.get("default", ...) is None:
            del result["default"]
        return result

    def encode_default(self, dft: Any) -> Any:
        """Return a default as JSON-serializable value. Building a serializer is skipped for values that need none."""
        return dft if type(dft) in _JSON_TYPES else super().encode_default(dft)

    def generate(self, schema: Any, mode: Any = "validation") -> Any:
        """Return the schema, without titles and docstrings of models, and without `"additionalProperties": false`."""
        result = super().generate(schema, mode)
        for definition in (result, *result.get("$defs", {}).values()):
            definition.pop("title", None)
            # The docstring of a model is written for programmers, and would cost tokens in every conversation.
            definition.pop("description", None)
            if mode == "validation" and definition.get("additionalProperties") is False:
                del definition["additionalProperties"]
        return result


class ArgumentSchema(JsonSchema):
    """A `JsonSchema` for arguments, which also leaves out obvious defaults, such as false or an empty list."""

    def default_schema(self, schema: Any) -> Any:
        """Return the schema with its default, unless the default is false or empty."""
        result = super().default_schema(schema)
        default = result.get("default")
        if default is False or default in ("", [], {}):
            del result["default"]
        return result


class Function:
    """A function that was declared as a tool, a resource or a prompt."""

    def __init__(self, function: Callable[..., Any], what: str, context: type) -> None:
        self.call = function if inspect.iscoroutinefunction(function) else in_thread(function)
        self.name = getattr(function, "__name__", "")
        self.declared = function
        self._context = context
        self.doc = inspect.cleandoc(function.__doc__ or "")
        self._what = f"{what} {self.name!r}"
        if inspect.isclass(function) or isinstance(function, partial) or not inspect.isroutine(function):
            raise DeclarationError(
                f"a {what} is a function or a method, not {function!r:.100}; write a `def` that calls it"
            )
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise DeclarationError(f"{self._what} yields; it must return its whole result")
        self.hints = evaluate(function, self._what)
        self.returns = self.hints.pop("return", None)
        takes_context = (name for name, hint in self.hints.items() if (get_origin(hint) or hint) is context)
        self._context_name = next(takes_context, None)
        self._fields = self._read_parameters()
        self._names = {name_of_argument(name, *field): name for name, field in self._fields.items()}
        """The name of each parameter by the name of its argument; `Field(alias=...)` makes the two differ."""

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, of type object. Raises DeclarationError if a type has no schema."""
        return inline_definitions(self._schema_with_definitions)

    @cached_property
    def _schema_with_definitions(self) -> dict[str, Any]:
        try:
            schema: dict[str, Any] = self._model.model_json_schema(schema_generator=ArgumentSchema)
        except PydanticUserError as error:
            raise DeclarationError(f"{self._what}: {self._explain(error)}") from error
        schema.setdefault("properties", {})
        return schema

    def names(self) -> tuple[str, ...]:
        """Return the names of the arguments, in their order."""
        return tuple(self._names)

    def is_required(self, name: str) -> bool:
        """Return True if the argument has no default."""
        return self._model.model_fields[self._names[name]].is_required()

    def description(self, name: str) -> str | None:
        """Return the description of the argument from `Field(description=...)`."""
        return self._model.model_fields[self._names[name]].description

    def bind(self, arguments: dict[str, Any], context: object = None) -> dict[str, Any]:
        """Return the validated keyword arguments for the function, with the `context` if it has a parameter for it.
        Raises InvalidArguments with the errors."""
        if len(arguments) > len(self._fields) + MAX_ERRORS:
            raise self._make_excess_error(arguments)
        data = to_json(arguments)
        try:
            # Validated as JSON, since strict validation of Python values would refuse a string for a `date`, or a
            # list for a tuple.
            checked: BaseModel = self._model.__pydantic_validator__.validate_json(data, strict=True)
        except ValidationError as error:
            checked = complete(self._coerce(data, error))
        bound = vars(checked)
        if self._context_name is not None:
            bound[self._context_name] = context
        return bound

    def bind_steps(self, arguments: dict[str, Any], context: object = None) -> Steps[dict[str, Any]]:
        """Do the same as `bind`, in steps."""
        if len(arguments) > len(self._fields) + MAX_ERRORS:
            raise self._make_excess_error(arguments)
        data = to_json(arguments)
        yield
        try:
            checked: BaseModel = self._model.__pydantic_validator__.validate_json(data, strict=True)
        except ValidationError as error:
            yield
            checked = yield from self._coerce(data, error)
        yield
        bound = vars(checked)
        if self._context_name is not None:
            bound[self._context_name] = context
        return bound

    def _make_excess_error(self, arguments: dict[str, Any]) -> InvalidArguments:
        unknown = len(arguments) - sum(name in arguments for name in self._names)
        return InvalidArguments(self._describe_many(arguments, unknown))

    def bind_text(self, arguments: dict[str, str], context: object = None) -> dict[str, Any]:
        """Return the same as `bind` for arguments that are all strings: "5" may become an integer."""
        try:
            checked = self._model.model_validate_strings(arguments)
        except ValidationError as error:
            raise InvalidArguments(describe(error, self._schema_with_definitions)) from None
        bound = vars(checked)
        if self._context_name is not None:
            bound[self._context_name] = context
        return bound

    def _coerce(self, data: bytes, error: ValidationError) -> Steps[BaseModel]:
        """Return the validated arguments after conversions; their JSON `data` was refused with `error`. Raises
        InvalidArguments if that is impossible."""
        # The parser's cache of short strings would double the time if all strings are different.
        arguments = from_json(data, cache_strings="none")
        yield
        count = error.error_count()
        if count > MAX_ERRORS and not self._may_be_coercible(arguments):
            raise InvalidArguments(self._describe_many(arguments, count))
        for _ in range(_MAX_COERCIONS):
            if not coerce(arguments, error.errors(include_url=False, include_context=False), self._is_optional):
                break
            try:
                return self._model.model_validate_json(to_json(arguments), strict=True)
            except ValidationError as next_error:
                error = next_error
            yield
        raise InvalidArguments(describe(error, self._schema_with_definitions))

    def _may_be_coercible(self, arguments: Any) -> bool:
        """Return True if a value at the beginning of `arguments`, which have very many errors, can be converted."""
        beginning = shorten(arguments, self._names)
        try:
            self._model.model_validate_json(to_json(beginning), strict=True)
        except ValidationError as error:
            return coerce(beginning, error.errors(include_url=False, include_context=False), self._is_optional)
        return False

    def _is_optional(self, name: str) -> bool:
        return name in self._names and not self.is_required(name)

    def _describe_many(self, arguments: Any, count: int) -> str:
        """Return the message for arguments with `count` errors, which are too many to list."""
        try:
            self._model.model_validate_json(to_json(shorten(arguments, self._names)), strict=True)
        except ValidationError as error:
            return f"{count:,} values are invalid, such as {describe(error, self._schema_with_definitions)}"
        return f"{count:,} values are invalid, none of them among the first; send fewer at once to see which"

    def _read_parameters(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, parameter in inspect.signature(self.declared).parameters.items():
            if name == self._context_name:
                continue
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                is_any = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
                advice = "; a decorator keeps them with `functools.wraps`" if is_any else ""
                raise DeclarationError(f"{self._what}: {name!r} must be a regular parameter{advice}")
            if name not in self.hints:
                advice = "; register the method of an object, as in `app.tool(notes.read)`" if name == "self" else ""
                raise DeclarationError(f"{self._what}: {name!r} has no type{advice}")
            if (get_origin(self.hints[name]) or self.hints[name]) is self._context:
                raise DeclarationError(f"{self._what}: {name!r} is a second {format_type(self._context)}")
            if any((get_origin(part) or part) is self._context for part in get_args(self.hints[name])):
                raise DeclarationError(
                    f"{self._what}: the type of {name!r} must be {format_type(self._context)} alone"
                )
            fields[name] = (self.hints[name], ... if parameter.default is parameter.empty else parameter.default)
        return fields

    def check(self) -> None:
        """Raise DeclarationError if an argument has no schema, or a default that its schema refuses. Validators of
        the author are not called: they are meant for calls, and may have side effects."""
        model = self._model
        unvalidated: dict[str, Any] = {
            name: (remove_validators(hint), default) for name, (hint, default) in self._fields.items()
        }
        if any(unvalidated[name][0] is not hint for name, (hint, _) in self._fields.items()):
            model = create_model(self.name, __config__=ConfigDict(arbitrary_types_allowed=True), **unvalidated)
        for name, field in model.model_fields.items():
            if field.default is PydanticUndefined:
                continue
            try:
                model.__pydantic_validator__.validate_assignment(model.model_construct(), name, field.default)
            except ValidationError as error:
                reason = error.errors(include_url=False, include_context=False, include_input=False)[0]["msg"]
                advice = f"; declare `{format_type(field.annotation)} | None`" if field.default is None else ""
                fault = f"the default of {name!r}, {field.default!r}, is not valid: {reason}{advice}"
                raise DeclarationError(f"{self._what}: {fault}") from None

    def check_texts(self) -> None:
        """Raise DeclarationError as in `check`, and if an argument can't be read from a string."""
        self.check()
        for argument, name in self._names.items():
            schema = self.schema["properties"][argument]
            types = {part.get("type") for part in schema.get("anyOf", [schema])}
            if not types <= {"array", "object", "null"}:
                continue
            core: Any = TypeAdapter(self.hints[name]).core_schema
            while core["type"] in ("default", "definitions", "model", "nullable"):
                core = core["schema"]
            # A validator of the author that is called before pydantic's may accept text.
            if core["type"] not in ("function-before", "function-wrap", "function-plain"):
                type_ = format_type(self.hints[name])
                raise DeclarationError(f"{self._what}: {name!r} can't be {type_}: clients send it as text")

    def _explain(self, error: Exception) -> str:
        """Return why the arguments have no schema, with the name of the first argument that has none. `error` is
        pydantic's."""
        for name, (hint, _) in self._fields.items():
            try:
                TypeAdapter(hint).json_schema()
            except (PydanticUserError, NameError, TypeError, ValueError) as error_:
                return f"{name!r} can't be {format_type(hint)}: {first_sentence(error_)}"
        return first_sentence(error)

    @cached_property
    def _model(self) -> type[BaseModel]:
        try:
            with warnings.catch_warnings():
                # An argument may be called `schema` or `copy`, like a method of pydantic's models.
                warnings.filterwarnings("ignore", message="Field name .* shadows an attribute")
                fields: dict[str, Any] = {
                    name: (add_descriptions(replace_iterables(hint)), default)
                    for name, (hint, default) in self._fields.items()
                }
                model = create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)
        except (PydanticUserError, NameError, TypeError, ValueError) as error:
            raise DeclarationError(f"{self._what}: {self._explain(error)}") from error
        # pydantic silently makes no fields of some names, such as those that begin with an underscore.
        for name in self._fields.keys() - model.model_fields.keys():
            raise DeclarationError(f"{self._what}: an argument can't be named {name!r}")
        return model


def first_sentence(error: Exception) -> str:
    """Return the first sentence of an error of pydantic, without its advice."""
    return str(error).partition("\n")[0].partition(". ")[0]


def output_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """Return the JSON Schema of a function's result, whose root says that it is an object, if it is one."""
    schema = adapter.json_schema(mode="serialization", schema_generator=JsonSchema)
    root = schema.pop("$ref", None)
    # pydantic's schema of a recursive model is only a reference, but the root must have a type (2025-06-18, Tool).
    return schema if root is None else {**schema["$defs"][root.removeprefix("#/$defs/")], **schema}

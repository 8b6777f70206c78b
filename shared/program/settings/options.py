"""Reads the fields of a pydantic model from command-line options, environment variables, and keys of a file.

Each field becomes `--its-name` and `PREFIX_ITS_NAME`. The command line takes precedence over the environment, and the
environment over the file. A field declared with `positional()` gets the positional arguments. In the environment, the
values of a switch that is on are `1`, `true`, `yes` and `on`; the items of a list of paths are separated as in
`PATH`, those of other lists by commas. A bad value ends the program with one clear line and exit code 2.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo

from .command_line import Spelling, spellings

Model = TypeVar("Model", bound=BaseModel)
LineValues = Mapping[str, str | list[str]]
"""The values of each field on a command line: the last value, or all values of a field that takes several."""

_INSTRUCTIONS = {
    **dict.fromkeys(("list_type", "tuple_type"), "write a list, such as [A, B]"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "write a table of names and values"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "write a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "write a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "write true or false"),
    "string_type": "write a string, in quotes if it looks like a number or a date",
    "path_type": "write a path",
    "missing": "it is missing",
    "extra_forbidden": "there is no such field",
}
"""Advice for an invalid value, by pydantic's error type."""

_EMPTY: Mapping[str, Any] = MappingProxyType({})


class FieldError(ValueError):
    """Raised by a validator of a whole model for an error in one field, so that the message can name the source of
    this field's value."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        super().__init__(reason)


class FileValue(NamedTuple):
    """A value in a file, and its source for messages: `FILE: key`."""

    value: Any
    source: str


class Group(NamedTuple):
    """Fields that form a group in the help, under `title`. Their environment variables begin with `prefix`. A group
    without a title contains the main options of the program; fields of a group without a prefix have no variables."""

    fields: Mapping[str, FieldInfo]
    title: str | None = None
    prefix: str | None = None
    is_rare: bool = False
    """True if only `--help-all` shows them."""


def positional(description: str, metavar: str, *, required: bool = False) -> Any:
    """Declare the field for positional arguments; a model has at most one. If it is `required`, forms in which users
    enter settings require it, but the model itself has to check that it is set."""
    extra: dict[str, Any] = {"positional": metavar, "required": required}
    return Field(default=[], description=description, json_schema_extra=extra)


def option(default: Any, description: str, metavar: str, *, paths_after: str | None = None) -> Any:
    """Declare a field whose value is called `metavar` in the help. For a value that contains a path, such as
    `name=PATH`, `paths_after` is the text before the path, here `=`; it is empty if the path comes first."""
    extra: dict[str, Any] = {"metavar": metavar, "paths_after": paths_after}
    return Field(default=default, description=description, json_schema_extra=extra)


def secret(default: Any, description: str) -> Any:
    """Declare a field for a secret. It has no command-line option, because every process can read command lines."""
    return Field(default=default, description=description, json_schema_extra={"secret": True})


def is_secret(field: FieldInfo) -> bool:
    """Return True if the field is a secret."""
    return bool(extra_of(field).get("secret"))


def paths_after(field: FieldInfo) -> str | None:
    """Return the text before the path in a value of the field, such as `=` in `name=PATH`: empty if the value begins
    with a path, None if it contains none. A field that is not a `Path` declares this text with
    `option(paths_after=...)`."""
    return "" if Path in (field.annotation, *get_args(field.annotation)) else extra_of(field).get("paths_after")


def expand_home(path: str | Path) -> Path:
    """Return the path with `~` expanded to the home directory; unchanged if there is no such directory."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 (pathlib raises there)


def positional_field(fields: Mapping[str, FieldInfo]) -> str | None:
    """Return the field for positional arguments; None if there is none."""
    return next((name for name, field in fields.items() if "positional" in extra_of(field)), None)


def option_spellings(fields: Mapping[str, FieldInfo]) -> dict[str, Spelling]:
    """Return the spellings of the options of these fields on a command line."""
    result: dict[str, Spelling] = {}
    for name, field in fields.items():
        if not is_secret(field) and "positional" not in extra_of(field):
            choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
            result |= spellings(name, flag_of(name), is_switch=field.annotation is bool, choices=choices)
    return result


def flag_of(name: str) -> str:
    """Return the command-line option of a field."""
    return "--" + name.replace("_", "-")


def variable_of(name: str, prefix: str) -> str:
    """Return the environment variable of a field."""
    return f"{prefix}_{name}".upper()


def read_options(
    model: type[Model],
    line_values: LineValues,
    environment: Mapping[str, str] = _EMPTY,
    prefix: str = "",
    file: Mapping[str, FileValue] = _EMPTY,
    *,
    has_valid_defaults: bool = False,
) -> Model:
    """Return the model with values from the command line, the environment, the file or its defaults, in this order of
    precedence. If the model `has_valid_defaults`, it is validated only if there are values other than defaults.

    Raises ValueError with one line that names the option, the variable or the key, and the error.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, field in model.model_fields.items():
        variable = variable_of(name, prefix)
        sources[name] = extra_of(field).get("positional") or flag_of(name)
        if name in line_values:
            values[name] = line_values[name]
        elif environment.get(variable):
            values[name], sources[name] = environment[variable], variable
            if get_origin(field.annotation) is list:
                separator = os.pathsep if get_args(field.annotation) == (Path,) else ","
                values[name] = split_list(environment[variable], separator)
        elif name in file:
            values[name], sources[name] = file[name]
    if has_valid_defaults and not values:
        return model.model_construct()
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        reason = describe_value_error(first["type"], first["msg"])
        raised = first.get("ctx", {}).get("error")
        field_name = raised.field if isinstance(raised, FieldError) else first["loc"][0] if first["loc"] else ""
        source = sources.get(str(field_name))
        raise ValueError(reason if source is None else f"{source}: {reason}") from None


def describe_value_error(kind: str, message: str) -> str:
    """Return a message about an invalid value, with advice for the operator. `kind` and `message` are pydantic's type
    and message of the error."""
    reason = _INSTRUCTIONS.get(kind) or message.removeprefix("Value error, ")
    return reason.replace("Input should be", "it must be", 1)


def split_list(value: str, separator: str) -> list[str]:
    """Return the values of a list in an environment variable."""
    return [part.strip() for part in value.split(separator) if part.strip()]


def extra_of(field: FieldInfo) -> dict[str, Any]:
    """Return the `json_schema_extra` of the field."""
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}

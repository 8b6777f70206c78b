"""A pydantic model as command-line options, environment variables, and keys of a file.

Each field becomes `--its-name` and `PREFIX_ITS_NAME`. The command line wins over the environment, and that over the
file. A field marked `positional()` takes the arguments that have no name. From the environment a switch takes `1`,
`true`, `yes` or `on`; a list of paths is separated as `PATH` is, any other list by commas. Bad values end the program
with one clear line and exit code 2.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar, get_args, get_origin

from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo

__all__ = [
    "LineParser",
    "OptionParser",
    "Written",
    "add_options",
    "called",
    "complain",
    "hidden",
    "is_hidden",
    "paths_after",
    "positional",
    "read_options",
]

Model = TypeVar("Model", bound=BaseModel)


class Written(NamedTuple):
    """A value that stands in a file, and where it does: `FILE: key`."""

    value: Any
    source: str


class LineParser(argparse.ArgumentParser):
    """A parser that complains in one line."""

    def error(self, message: str) -> NoReturn:
        """Ends the program, without the usage, which would hide what is wrong."""
        complain(self, self.advised(message))

    def advised(self, message: str) -> str:
        """`message` with the option that was meant, or else where all are told."""
        unknown = message.partition("unrecognized arguments: ")[2].split()
        known = [option[2:] for option in self._option_string_actions if option.startswith("--")]
        close = get_close_matches(unknown[0].removeprefix("--").partition("=")[0], known, 1, 0.75) if unknown else []
        return f"{message}; did you mean --{close[0]}?" if close else f"{message}; see --help"


class OptionParser(LineParser):
    """A parser that takes options in full only, in any order with other arguments."""

    def __init__(self, prog: str, description: str | None, epilog: str) -> None:
        # Not made up from all options: that would be long, and argparse would do it at every start.
        usage = "%(prog)s [OPTION ...]"
        super().__init__(prog, usage, description, epilog, formatter_class=_of_any_width, allow_abbrev=False)
        self.unnamed: str | None = None
        """The field that takes the arguments without a name."""

    def format_help(self) -> str:
        """The help, as wide as the terminal."""
        self.formatter_class = argparse.HelpFormatter
        return super().format_help()

    def read(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """The options given; after `--` there are none. Ends the program where one is unknown or has no value."""
        words = list(sys.argv[1:] if arguments is None else arguments)
        end = words.index("--") if "--" in words and self.unnamed is not None else len(words)
        given = self.parse_intermixed_args(words[:end])
        if self.unnamed is not None:
            setattr(given, self.unnamed, [*getattr(given, self.unnamed), *words[end + 1 :]])
        return given


def _of_any_width(prog: str) -> argparse.HelpFormatter:
    # With every option argparse tries a formatter. One that asks for the width of the terminal loads `shutil`, and
    # with that three kinds of compression.
    return argparse.HelpFormatter(prog, width=80)


def positional(description: str, metavar: str) -> Any:
    """A field that takes the arguments without a name; there may be one such field."""
    return Field(default=[], description=description, json_schema_extra={"positional": metavar})


def hidden(default: Any, description: str) -> Any:
    """A field for a secret, which no command line sets, because that would show it to every process."""
    return Field(default=default, description=description, json_schema_extra={"hidden": True})


def is_hidden(field: FieldInfo) -> bool:
    """Whether the field is a secret."""
    return bool(_extra(field).get("hidden"))


def paths_after(field: FieldInfo) -> str | None:
    """What a path in a value of the field follows: nothing where the value is a path, by its type or by `paths_after`
    in `json_schema_extra`, which may be as well what ends a name before it. None where there is no path."""
    return "" if Path in (field.annotation, *get_args(field.annotation)) else _extra(field).get("paths_after")


def add_options(parser: OptionParser, fields: Mapping[str, FieldInfo], title: str, prefix: str) -> None:
    """Adds the fields of a model to `parser`, as one group of its help."""
    group = parser.add_argument_group(title)
    for name, field in fields.items():
        extra = _extra(field)
        variable = _variable(prefix, name)
        if "positional" in extra:
            text = f"{field.description} [{variable}, separated by {os.pathsep!r}]"
            parser.unnamed = name
            parser.usage = f"{parser.usage} [{extra['positional']} ...]"
            group.add_argument(name, nargs="*", metavar=extra["positional"], help=text, default=[])
        elif not is_hidden(field):
            group.add_argument(
                _flag(name), **_shape(name, field), help=_help(field, variable), default=argparse.SUPPRESS
            )


def read_options(
    model: type[Model],
    given: argparse.Namespace,
    environment: Mapping[str, str],
    prefix: str,
    file: Mapping[str, Written] = MappingProxyType({}),
) -> Model:
    """The model filled from the command line, else the environment, else the file, else its defaults.

    Raises ValueError with one line that names the option, the variable or the key, and what is wrong with it.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, field in model.model_fields.items():
        variable = _variable(prefix, name)
        sources[name] = _extra(field).get("positional") or _flag(name)
        if getattr(given, name, None) not in (None, []):
            values[name] = getattr(given, name)
        elif environment.get(variable):
            values[name] = _from_environment(environment[variable], field)
            sources[name] = variable
        elif name in file:
            values[name], sources[name] = file[name]
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ValueError(_explained(error, sources)) from None


def called() -> str:
    """What the user called: a console script, or `python -m NAME`."""
    program = Path(sys.argv[0])
    spec = sys.modules["__main__"].__spec__
    if spec is not None and program.suffix == ".py":
        return f"python -m {spec.name.removesuffix('.__main__')}"
    return program.name.removesuffix(".exe")


def complain(parser: argparse.ArgumentParser, reason: str) -> NoReturn:
    """Ends the program with one line on stderr and exit code 2."""
    parser.exit(2, f"{parser.prog}: {'; '.join(reason.splitlines())}\n")


def _extra(field: FieldInfo) -> dict[str, Any]:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _variable(prefix: str, name: str) -> str:
    return f"{prefix}_{name}".upper()


def _help(field: FieldInfo, variable: str) -> str:
    default = field.get_default(call_default_factory=True, validated_data={})
    shown = "" if default in (None, False, []) else f" (default: {default})"
    several = "; may be repeated" if get_origin(field.annotation) is list else ""
    return f"{field.description}{several}{shown} [{variable}]".replace("%", "%%")


def _shape(name: str, field: FieldInfo) -> dict[str, Any]:
    if field.annotation is bool:
        # Whoever has to undo `--no-x` leaves it out; `--no-no-x` would help nobody.
        return {"action": "store_true" if name.startswith("no_") else argparse.BooleanOptionalAction}
    if get_origin(field.annotation) is list:
        return {"action": "append", "metavar": "VALUE"}
    if get_origin(field.annotation) is Literal:
        return {"choices": get_args(field.annotation)}
    return {"metavar": "VALUE"}


def _from_environment(value: str, field: FieldInfo) -> Any:
    if get_origin(field.annotation) is not list:
        return value
    separator = os.pathsep if get_args(field.annotation) == (Path,) else ","
    return [part.strip() for part in value.split(separator) if part.strip()]


def _explained(error: ValidationError, sources: Mapping[str, str]) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    reason = first["msg"].removeprefix("Value error, ")
    source = sources.get(str(first["loc"][0])) if first["loc"] else None
    return reason if source is None else f"{source}: {reason}"

"""The help of a program, written by argparse. This module is imported only when the help is shown."""

import argparse
import os
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from .options import Group, extra_of, flag_of, is_secret, positional_field, variable_of


def help_text(
    groups: Sequence[Group],
    program: str,
    description: str | None,
    epilog: str,
    usage: str | None,
    version: str | None,
) -> str:
    """Return the help of `program` with all options, as wide as the terminal. `usage` replaces the usage line that is
    made from the fields."""
    # The usage line does not list the options, because it would be too long.
    parser = argparse.ArgumentParser(program, "%(prog)s [OPTION ...]", description, epilog)
    if version is not None:
        parser.add_argument("--version", action="version", version=version)
    for group in groups:
        section = parser if group.title is None else parser.add_argument_group(group.title)
        positional = positional_field(group.fields)
        for name, field in group.fields.items():
            variable = None if group.prefix is None else variable_of(name, group.prefix)
            if name == positional:
                metavar = extra_of(field)["positional"]
                text = _with_variable(
                    field.description or "", variable and f"{variable}, separated by {os.pathsep!r}"
                )
                parser.usage = f"{parser.usage} [{metavar} ...]"
                section.add_argument(name, nargs="*", metavar=metavar, help=text)
            elif not is_secret(field):
                default = field.get_default(call_default_factory=True, validated_data={})
                shown_default = "" if default in (None, False, []) else f" (default: {default})"
                suffix = " (required)" if field.is_required() else shown_default
                repetition = "; may be repeated" if get_origin(field.annotation) is list else ""
                text = _with_variable(f"{field.description or ''}{repetition}{suffix}".lstrip("; "), variable)
                section.add_argument(flag_of(name), **_argument_keywords(name, field), help=text)
    if usage is not None:
        parser.usage = f"%(prog)s {usage}"
    return parser.format_help()


def _with_variable(text: str, variable: str | None) -> str:
    return (text if variable is None else f"{text} [{variable}]".lstrip()).replace("%", "%%")


def _argument_keywords(name: str, field: FieldInfo) -> dict[str, Any]:
    # SUPPRESS keeps argparse from adding the default to the help.
    if field.annotation is bool:
        action: Any = "store_true" if name.startswith("no_") else argparse.BooleanOptionalAction
        return {"action": action, "default": argparse.SUPPRESS}
    if get_origin(field.annotation) is Literal:
        return {"choices": get_args(field.annotation)}
    return {"metavar": extra_of(field).get("metavar", "VALUE")}

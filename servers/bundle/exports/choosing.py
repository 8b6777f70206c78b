"""Which arguments a form shows to whoever plugs a server in without reading its options."""

from ..catalog import Argument, Entry

__all__ = ["fills_command", "is_path", "shown", "title"]


def shown(entry: Entry) -> list[Argument]:
    """What is picked or ticked, what is secret, and what is required.

    Patterns, limits and names keep their defaults: they take typing and reading, and who wants them writes the
    command down by hand. An option without a variable is left out as well, since it can't be given empty.
    """
    return [one for one in entry.arguments if one.required or (_is_simple(one) and _may_be_empty(one))]


def fills_command(argument: Argument) -> bool:
    """Whether it becomes a part of the command; all else is set in the environment, where empty means unset."""
    return argument.required or (argument.option is None and argument.repeated and is_path(argument))


def is_path(argument: Argument) -> bool:
    """Whether its value is a file or a directory."""
    return argument.type in ("file", "directory")


def title(argument: Argument) -> str:
    """How a form calls it."""
    return argument.name.replace("_", " ").capitalize()


def _is_simple(argument: Argument) -> bool:
    return argument.secret or argument.type == "boolean" or is_path(argument)


def _may_be_empty(argument: Argument) -> bool:
    return fills_command(argument) or argument.environment is not None

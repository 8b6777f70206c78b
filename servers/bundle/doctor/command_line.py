"""What the arguments of a server say, read as the server will read them."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from shared.program.options import is_hidden
from shared.program.run import Options

from ..catalog import Argument, Entry

__all__ = ["Given", "is_on", "known_variables", "read_arguments", "read_variables", "value_of"]

# A secret is no option, since every process could read it there.
_COMMON = [name for name, field in Options.model_fields.items() if not is_hidden(field)]
_ON = {"1", "true", "yes", "on", "t", "y"}


class Given(NamedTuple):
    """What is set."""

    own: list[tuple[Argument, str]]
    """The arguments of this server."""
    common: dict[str, str]
    """The options of every server, by their names such as `token_file`."""
    unknown: list[str]
    """Why an option or a variable sets nothing."""


def read_arguments(entry: Entry, words: Sequence[str]) -> Given:
    """What the command line sets."""
    own = {argument.option: argument for argument in entry.arguments if argument.option is not None}
    unnamed = next((argument for argument in entry.arguments if argument.option is None), None)
    given = Given([], {}, [])
    end = words.index("--") if "--" in words else len(words)
    rest = list(words[:end])
    plain: list[str] = []
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            plain.append(word)
            continue
        option, joined, value = word.partition("=")
        positive = _without_no(option, own)
        argument, name = own.get(positive), option.removeprefix("--").replace("-", "_")
        if argument is None and name not in _COMMON:
            given.unknown.append(_no_such("option", option, [*own, *map(_option, _COMMON)]))
            continue
        if _is_switch(argument, name):
            value = "1" if option == positive else "0"
        elif not joined:
            value = rest.pop(0) if rest else ""
        if argument is not None:
            given.own.append((argument, value))
        else:
            given.common[name] = value
    if unnamed is not None:
        given.own.extend((unnamed, word) for word in [*plain, *words[end + 1 :]])
    return given


def read_variables(entry: Entry, environment: Mapping[str, str], separator: str) -> Given:
    """What the variables set; a list of paths is separated by `separator`."""
    own = {argument.environment: argument for argument in entry.arguments if argument.environment is not None}
    common = {_variable(name): name for name in Options.model_fields}
    given = Given([], {}, [])
    for variable, value in environment.items():
        argument = own.get(variable)
        if argument is not None and value:
            is_list = argument.repeated and argument.type in ("file", "directory")
            given.own.extend((argument, part) for part in (value.split(separator) if is_list else [value]) if part)
        elif variable in common and value:
            given.common[common[variable]] = value
        elif argument is None and variable not in common and variable.startswith("MCP_"):
            given.unknown.append(_no_such("variable", variable, [*own, *common]))
    return given


def known_variables(entries: Sequence[Entry]) -> dict[str, str]:
    """Every variable that changes a server, and which."""
    own = {one.environment: entry.name for entry in entries for one in entry.arguments if one.environment is not None}
    return {**own, **{_variable(name): "every server" for name in Options.model_fields}}


def value_of(name: str, *sources: Given) -> str | None:
    """What an option of every server is set to, by the first of the sources that sets it."""
    return next((source.common[name] for source in sources if name in source.common), None)


def is_on(argument: Argument, value: str) -> bool:
    """Whether it is a switch, and switched on."""
    return argument.type == "boolean" and value.lower() in _ON


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _variable(name: str) -> str:
    return f"MCP_{name}".upper()


def _without_no(option: str, own: Mapping[str, Argument]) -> str:
    positive = "--" + option.removeprefix("--no-")
    return positive if positive in own and own[positive].type == "boolean" else option


def _is_switch(argument: Argument | None, name: str) -> bool:
    return argument.type == "boolean" if argument is not None else Options.model_fields[name].annotation is bool


def _no_such(what: str, name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, 1)
    return f"there is no {what} {name}" + (f"; did you mean {close[0]}?" if close else "")

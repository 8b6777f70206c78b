"""The settings with which a server is started: its arguments, its variables, and the environment of its client."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from servers.catalog import Argument, Entry
from servers.common.machine import Machine
from shared.program.run import Options
from shared.program.settings.command_line import read_command_line
from shared.program.settings.options import option_spellings, split_list, variable_of
from shared.text import nearest

from ..hosts.clients import Client

_COMMON = option_spellings(Options.model_fields)
_ON = {"1", "true", "yes", "on", "t", "y"}
# The names of the clients that run in a terminal, and pass on the environment of the shell.
_TERMINAL_CLIENTS = {"claude-code", "gemini", "codex"}
_BARE_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
# The variables that a program has which was not started from a shell.
_DESKTOP_VARIABLES = {
    *("HOME", "LANG", "LC_ALL", "LOGNAME", "SHELL", "TERM", "TMPDIR", "USER"),
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE"),
    *("SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"),
}


class GivenSettings(NamedTuple):
    """The values that a command line or an environment sets."""

    own: list[tuple[Argument, str]]
    """The arguments of this server, with their values."""
    common: dict[str, str]
    """The options of every server, by names such as `token_file`."""
    faults: list[str]
    """Why options or variables are invalid, one message each."""


def read_arguments(entry: Entry, words: Sequence[str]) -> GivenSettings:
    """Return the settings on the command line of a server, whose arguments are `words`."""
    options = {**_COMMON, **entry.spellings()}
    line = read_command_line(words, options)
    own = {argument.option: argument for argument in entry.arguments}
    settings = GivenSettings([], {}, [])
    for name, value, *_ in line.values:
        if name in own:
            settings.own.append((own[name], value))
        elif name is not None:
            settings.common[name] = value
    hidden = -1
    for number, reason in line.errors:
        if number == hidden:
            continue
        settings.faults.append(reason or _no_such("option", words[number].partition("=")[0], options))
        argument = own.get(words[number])
        if argument is not None and argument.secret and number + 1 < len(words):
            # The word after it was not read as its value because it looks like an option, but it may be the secret.
            hidden = number + 1
            settings.own.append((argument, words[hidden]))
    return settings


def read_variables(entry: Entry, environment: Mapping[str, str], separator: str) -> GivenSettings:
    """Return the settings in environment variables. `separator` separates the paths in a list."""
    own = {argument.environment: argument for argument in entry.arguments if argument.environment is not None}
    common = {variable_of(name, "MCP"): name for name in Options.model_fields}
    settings = GivenSettings([], {}, [])
    for variable, value in environment.items():
        argument = own.get(variable)
        if argument is not None and value:
            between = separator if argument.type in ("file", "directory") else ","
            parts = split_list(value, between) if argument.repeated else [value]
            settings.own.extend((argument, part) for part in parts)
        elif variable in common and value:
            settings.common[common[variable]] = value
        elif argument is None and variable not in common and variable.startswith("MCP_"):
            settings.faults.append(_no_such("variable", variable, [*own, *common]))
    return settings


def known_variables(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the name of the server that each variable affects, by variable."""
    own = {
        argument.environment: entry.name
        for entry in entries
        for argument in entry.arguments
        if argument.environment is not None
    }
    return {**own, **{variable_of(name, "MCP"): "every server" for name in Options.model_fields}}


def value_of(name: str, *sources: GivenSettings) -> str | None:
    """Return the value of an option of every server, from the first source that sets it; None if none does."""
    return next((source.common[name] for source in sources if name in source.common), None)


def is_on(argument: Argument, value: str) -> bool:
    """Return True if `argument` is a switch and `value` turns it on."""
    return argument.type == "boolean" and value.lower() in _ON


def _no_such(what: str, name: str, names: Iterable[str]) -> str:
    close = nearest(name, names)
    return f"there is no {what} {name}" + (f"; did you mean {close}?" if close else "")


def environment_from(client: Client | None, machine: Machine) -> dict[str, str]:
    """Return the environment that a client passes on to a server, in addition to the variables in the entry. If
    `client` is None, return that of a desktop program."""
    shell = machine.environment
    if client is not None and client.name in _TERMINAL_CLIENTS:
        return {"PATH": "", **shell}
    inherited = {name: value for name, value in shell.items() if name.upper() in _DESKTOP_VARIABLES}
    # On Windows, PATH is a setting of the user that all programs get.
    return {**inherited, "PATH": shell.get("PATH", "") if machine.system == "windows" else _BARE_PATH}

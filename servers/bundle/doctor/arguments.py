"""What a server is given: by its arguments, by variables, and by the environment that it is started in."""

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
# They run in a terminal, and hand on what the shell gave them.
_OF_TERMINALS = {"claude-code", "gemini", "codex"}
_BARE_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
# What a program has that was not started from a shell.
_OF_DESKTOP = {
    *("HOME", "LANG", "LC_ALL", "LOGNAME", "SHELL", "TERM", "TMPDIR", "USER"),
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE"),
    *("SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"),
}


class Given(NamedTuple):
    """What is set."""

    own: list[tuple[Argument, str]]
    """The arguments of this server."""
    common: dict[str, str]
    """The options of every server, by their names such as `token_file`."""
    faults: list[str]
    """Why an option or a variable sets nothing."""


def read_arguments(entry: Entry, words: Sequence[str]) -> Given:
    """What the command line sets."""
    options = {**_COMMON, **entry.spellings()}
    line = read_command_line(words, options)
    own = {argument.option: argument for argument in entry.arguments}
    given = Given([], {}, [])
    for name, value, *_ in line.given:
        if name in own:
            given.own.append((own[name], value))
        elif name is not None:
            given.common[name] = value
    hidden = -1
    for number, reason in line.faults:
        if number == hidden:
            continue
        given.faults.append(reason or _no_such("option", words[number].partition("=")[0], options))
        argument = own.get(words[number])
        if argument is not None and argument.secret and number + 1 < len(words):
            # What looks like an option is no value to the reader, and may be the secret all the same.
            hidden = number + 1
            given.own.append((argument, words[hidden]))
    return given


def read_variables(entry: Entry, environment: Mapping[str, str], separator: str) -> Given:
    """What the variables set; a list of paths is separated by `separator`."""
    own = {argument.environment: argument for argument in entry.arguments if argument.environment is not None}
    common = {variable_of(name, "MCP"): name for name in Options.model_fields}
    given = Given([], {}, [])
    for variable, value in environment.items():
        argument = own.get(variable)
        if argument is not None and value:
            between = separator if argument.type in ("file", "directory") else ","
            parts = split_list(value, between) if argument.repeated else [value]
            given.own.extend((argument, part) for part in parts)
        elif variable in common and value:
            given.common[common[variable]] = value
        elif argument is None and variable not in common and variable.startswith("MCP_"):
            given.faults.append(_no_such("variable", variable, [*own, *common]))
    return given


def known_variables(entries: Sequence[Entry]) -> dict[str, str]:
    """Every variable that changes a server, and which."""
    own = {one.environment: entry.name for entry in entries for one in entry.arguments if one.environment is not None}
    return {**own, **{variable_of(name, "MCP"): "every server" for name in Options.model_fields}}


def value_of(name: str, *sources: Given) -> str | None:
    """What an option of every server is set to, by the first of the sources that sets it."""
    return next((source.common[name] for source in sources if name in source.common), None)


def is_on(argument: Argument, value: str) -> bool:
    """Whether it is a switch, and switched on."""
    return argument.type == "boolean" and value.lower() in _ON


def _no_such(what: str, name: str, known: Iterable[str]) -> str:
    close = nearest(name, known)
    return f"there is no {what} {name}" + (f"; did you mean {close}?" if close else "")


def environment_from(client: Client | None, machine: Machine) -> dict[str, str]:
    """What the client hands on to a server, besides the variables of its entry; a desktop program for None."""
    shell = machine.environment
    if client is not None and client.name in _OF_TERMINALS:
        return {"PATH": "", **shell}
    inherited = {name: value for name, value in shell.items() if name.upper() in _OF_DESKTOP}
    # On Windows the PATH is a setting of the user, the same for all programs.
    return {**inherited, "PATH": shell.get("PATH", "") if machine.system == "windows" else _BARE_PATH}

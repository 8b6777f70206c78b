"""Can a client start what its configuration names? What can be seen without starting it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from shared.kit.installation import is_passing

from ..hosts.clients import Machine
from ..program import program
from .command_line import Given, read_arguments, read_variables, value_of
from .configurations import Launch
from .environments import environment_from
from .findings import Finding, fault, warning
from .paths import check_paths
from .ports import check_port
from .programs import environment_of, interpreter_of
from .tokens import check_token_file

__all__ = ["check_launch", "is_filled_in"]

_CONTAINERS = {"docker", "podman", "nerdctl"}
_RUNNERS = {"uv", "uvx"}


def check_launch(launch: Launch, machine: Machine) -> Iterator[Finding]:
    """Looks at the command, its environment of Python, its arguments and variables, and what these name."""
    if launch.server.command is None or is_filled_in(launch):
        return
    yield from _command(launch, Path(launch.server.command), machine)
    yield from _wheel(launch, Path(launch.server.command))
    separator = ";" if machine.system == "windows" else ":"
    given = read_arguments(launch.entry, launch.words)
    variables = read_variables(launch.entry, launch.server.env, separator)
    for reason in given.faults:
        yield fault(
            launch.where, reason, f"correct it in {launch.file}; `{program()} info {launch.entry.name}` lists all"
        )
    for reason in variables.faults:
        yield warning(launch.where, reason, f"correct it in {launch.file}, or take it out")
    yield from _transport(launch, given, variables)
    # What follows a wrong option may be its value, and a secret; a container has files of its own.
    if not given.faults and Path(launch.server.command).stem not in _CONTAINERS:
        yield from check_paths(launch, [*given.own, *variables.own])
        token = value_of("token_file", given, variables)
        if token is not None:
            yield from check_token_file(Path(token), launch.where)


def is_filled_in(launch: Launch) -> bool:
    """Whether it has `${variables}`, which only the client knows."""
    server = launch.server
    return any("${" in word for word in (server.command or "", *server.args, *server.env.values()))


def _command(launch: Launch, command: Path, machine: Machine) -> Iterator[Finding]:
    let = launch.another
    if not command.is_absolute():
        if shutil.which(command, path=environment_from(launch.client, machine)["PATH"]) is None:
            known = shutil.which(command, path=machine.environment.get("PATH", ""))
            why = f"{launch.client.title} does not look where your shell does" if known else "is on no PATH"
            what = f"{command} has no absolute path, and {why}"
            yield fault(launch.where, what, f"in {launch.file} write {known}" if known else let)
    elif is_passing(command):
        yield _in_cache(launch, command)
    elif not command.exists():
        yield fault(launch.where, _gone(command), let)
    elif not command.is_file() or not os.access(command, os.X_OK):
        fix = let if not command.is_file() else f"chmod +x '{command}'"
        yield fault(launch.where, f"{command} is not a program that may be executed", fix)
    else:
        interpreter = interpreter_of(command)
        if interpreter is not None and not interpreter.exists():
            what = f"{command} starts {interpreter}, which does not exist: the environment was moved or has lost it"
            yield fault(launch.where, what, let)


def _in_cache(launch: Launch, command: Path) -> Finding:
    if command.exists():
        what = f"{command} is in uv's cache, and gone after the next `uv cache clean`"
        return warning(launch.where, what, launch.another)
    return fault(launch.where, f"{command} is gone, since uv's cache was emptied", launch.another)


def _wheel(launch: Launch, command: Path) -> Iterator[Finding]:
    """Looks whether the file or directory is there from which uvx takes the server, where it does so."""
    words = launch.server.args
    if command.stem in _RUNNERS and "--from" in words[:-1]:
        given = Path(words[words.index("--from") + 1].partition("[")[0])
        if given.is_absolute() and not given.exists():
            what = f"{given}, from which uvx takes the server, does not exist"
            yield fault(launch.where, what, f"put it there, or {launch.another}")


def _gone(command: Path) -> str:
    """Why there is no such program."""
    environment = environment_of(command).parent
    if command.is_symlink():
        return f"{command} leads to {command.readlink()}, which is gone: that Python was removed or replaced"
    if not environment.exists():
        return f"{command} is gone, with its environment {environment}: it was moved or deleted"
    return f"{command} does not exist"


def _transport(launch: Launch, given: Given, variables: Given) -> Iterator[Finding]:
    if value_of("transport", given, variables) != "http":
        return
    what = "it is started with the transport http, and clients speak over stdio with what they start"
    yield fault(launch.where, what, f"take that out of {launch.file}, or start it by yourself and put its URL there")
    port = value_of("port", given, variables)
    if port is not None:
        yield from check_port(value_of("host", given, variables) or "127.0.0.1", port, launch.where)

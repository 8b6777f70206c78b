"""Checks of the command in a client's entry, without running it."""

import errno
import os
import shutil
import socket
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from servers.catalog import Argument
from servers.common.machine import Machine
from shared.auth.tokens_file import TokensFile
from shared.program.installation import is_ephemeral
from shared.program.settings.options import expand_home

from ..program_name import program_name
from .arguments import environment_from, is_on, read_arguments, read_variables, value_of
from .configurations import Launch
from .findings import Finding, fault, warning
from .installation import directory_of, interpreter_of

_CONTAINERS = {"docker", "podman", "nerdctl"}
_RUNNERS = {"uv", "uvx"}
_MODES = ("ro", "rw")


def check_launch(launch: Launch, machine: Machine) -> Iterator[Finding]:
    """Check the command of an entry, its Python environment, its arguments and variables, and the files that these
    name."""
    if launch.server.command is None or has_placeholders(launch):
        return
    yield from _check_command(launch, Path(launch.server.command), machine)
    words = launch.server.args
    if Path(launch.server.command).stem in _RUNNERS and "--from" in words[:-1]:
        wheel = Path(words[words.index("--from") + 1].partition("[")[0])
        if wheel.is_absolute() and not wheel.exists():
            what = f"{wheel}, from which the server is installed, does not exist"
            yield fault(launch.where, what, f"put the wheel there, or {launch.advice}")
    if launch.is_outside_catalog:
        # Its arguments and variables are not in the catalog, and it reports errors in them itself.
        return
    separator = ";" if machine.system == "windows" else ":"
    arguments = read_arguments(launch.entry, launch.words)
    variables = read_variables(launch.entry, launch.server.env, separator)
    for reason in arguments.faults:
        yield fault(
            launch.where,
            reason,
            f"correct it in {launch.file}; `{program_name()} info {launch.entry.name}` lists the options",
        )
    for reason in variables.faults:
        yield warning(launch.where, reason, f"correct it in {launch.file}, or remove it")
    if value_of("transport", arguments, variables) == "http":
        what = "it is started with the transport http, but clients use stdio with servers that they start"
        fix = f"remove that from {launch.file}, or start it yourself and put its URL there"
        yield fault(launch.where, what, fix)
        port = value_of("port", arguments, variables)
        if port is not None:
            yield from check_port(value_of("host", arguments, variables) or "127.0.0.1", port, launch.where)
    # After an invalid option, it is unknown which words are values. In a container, paths mean other files.
    if not arguments.faults and Path(launch.server.command).stem not in _CONTAINERS:
        yield from check_paths(launch, [*arguments.own, *variables.own])
        token = value_of("token_file", arguments, variables)
        if token is not None:
            yield from check_token_file(Path(token), launch.where)
        tokens = value_of("tokens_file", arguments, variables)
        if tokens is not None:
            yield from check_tokens_file(Path(tokens), launch.where)


def has_placeholders(launch: Launch) -> bool:
    """Return True if the command contains placeholders such as `${NAME}`, whose values only the client knows."""
    server = launch.server
    return any("${" in word for word in (server.command or "", *server.args, *server.env.values()))


def _check_command(launch: Launch, command: Path, machine: Machine) -> Iterator[Finding]:
    advice = launch.advice
    if not command.is_absolute():
        if shutil.which(command, path=environment_from(launch.client, machine)["PATH"]) is None:
            elsewhere = shutil.which(command, path=machine.environment.get("PATH", ""))
            why = (
                f"{launch.client.title} does not search where your shell does" if elsewhere else "is not on the PATH"
            )
            what = f"{command} is not an absolute path, and {why}"
            yield fault(launch.where, what, f"in {launch.file}, write {elsewhere}" if elsewhere else advice)
    elif is_ephemeral(command):
        if command.exists():
            what = f"{command} is in uv's cache, which the next `uv cache clean` empties"
            yield warning(launch.where, what, advice)
        else:
            yield fault(launch.where, f"{command} is gone, because uv's cache was emptied", advice)
    elif not command.exists():
        environment = directory_of(command).parent
        what = f"{command} does not exist"
        if command.is_symlink():
            what = f"{command} points to {command.readlink()}, which is gone: that Python was removed or replaced"
        elif not environment.exists():
            what = f"{command} is gone, with its environment {environment}: it was moved or deleted"
        yield fault(launch.where, what, advice)
    elif not command.is_file() or not os.access(command, os.X_OK):
        fix = advice if not command.is_file() else f"chmod +x '{command}'"
        yield fault(launch.where, f"{command} is not executable", fix)
    else:
        interpreter = interpreter_of(command)
        if interpreter is not None and not interpreter.exists():
            what = (
                f"{command} starts {interpreter}, which does not exist: the environment was moved or no longer has it"
            )
            yield fault(launch.where, what, advice)


# The files that its arguments name


def check_paths(launch: Launch, arguments: Sequence[tuple[Argument, str]]) -> Iterator[Finding]:
    """Check the paths in the arguments of a server."""
    switched = {argument.option for argument, value in arguments if is_on(argument, value)}
    writes = launch.entry.permissions.writing in switched
    for argument, value in arguments:
        path_text, mode = value, ""
        if argument.type == "string":  # DIR:MODE or NAME=PATH:MODE
            if "=" in (argument.metavar or ""):
                path_text = value.partition("=")[2]
            before, _, after = path_text.rpartition(":")
            path_text, mode = (before, after) if after in _MODES else (path_text, "")
        if argument.name in launch.entry.permissions.paths and path_text and not path_text.startswith(":"):
            yield from _check_path(launch, argument, Path(path_text), "--create" in switched)
            path = expand_home(path_text)
            if writes and mode != "ro" and path.exists() and not os.access(path, os.W_OK):
                fix = f"chmod u+w '{path}', or remove {launch.entry.permissions.writing} from {launch.file}"
                yield warning(launch.where, f"writing is allowed, but {path} is write-protected", fix)


def _check_path(launch: Launch, argument: Argument, path: Path, creates: bool) -> Iterator[Finding]:
    kind = "directory" if argument.type == "directory" or "DIR" in (argument.metavar or "") else "file"
    absolute = expand_home(path)
    where, correct = launch.where, f"correct the path in {launch.file}"
    if not absolute.is_absolute():
        fix = f"in {launch.file}, write {launch.directory / absolute}, if that is the intended place"
        yield fault(where, f"{path} is not an absolute path, so it means a different place in each client", fix)
    elif not absolute.exists():
        if kind != "file" or not creates:
            make = "create the directory" if kind == "directory" else "put the file there"
            yield fault(where, f"the {kind} {path} does not exist", f"{make}, or {correct}")
        elif not absolute.parent.is_dir():
            yield fault(
                where, f"{path} can't be created: {absolute.parent} is not a directory", f"make it, or {correct}"
            )
    elif absolute.is_dir() != (kind == "directory"):
        yield fault(where, f"{path} is {'a directory' if absolute.is_dir() else 'a file'}, not a {kind}", correct)
    elif not os.access(absolute, os.R_OK | (os.X_OK if kind == "directory" else 0)):
        yield fault(
            where, f"you are not allowed to read the {kind} {path}", f"make it readable: chmod u+rX '{absolute}'"
        )


def check_token_file(path: Path, where: str) -> Iterator[Finding]:
    """Check that a file with a token exists, is not empty, and is private. Findings never contain the token."""
    make = f"create one: python -c 'import secrets; print(secrets.token_urlsafe())' > '{path}' && chmod 600 '{path}'"
    try:
        mode = path.stat().st_mode
        # Don't read a pipe: that would block, and take the data that is meant for the server.
        empty = stat.S_ISREG(mode) and not path.read_bytes().strip()
    except FileNotFoundError:
        yield fault(where, f"the token file {path} does not exist", make)
        return
    except OSError as error:
        yield fault(where, f"the token file {path} can't be read: {error.strerror}", make)
        return
    if empty:
        yield fault(where, f"the token file {path} is empty", make)
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        fix = f"chmod 600 '{path}', and create a new token if others use this machine"
        yield fault(where, f"the token file {path} is accessible to other users on this machine", fix)


def check_tokens_file(path: Path, where: str) -> Iterator[Finding]:
    """Check that a tokens file is valid, and that other users can't access it."""
    try:
        exposed = TokensFile(path).is_exposed
    except ValueError as error:
        fix = f"correct it, or create one: {program_name()} token new NAME --tokens-file '{path}'"
        yield fault(where, f"the tokens file can't be used: {error}", fix)
        return
    if exposed:
        what = f"the tokens file {path} is accessible to other users on this machine"
        yield warning(where, what, f"chmod 600 '{path}'")


def check_port(host: str, port: str, where: str) -> Iterator[Finding]:
    """Check that the port is free, by listening on it for a moment."""
    if not port.isdecimal() or int(port) > 65535:
        yield fault(where, f"{port} is not a port", "use a number from 0 to 65535")
        return
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as listener:
            if os.name == "posix":
                # As servers do, so that a port that was closed a moment ago counts as free.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            yield fault(
                where,
                f"port {port} on {host} is in use",
                "stop the program that listens there, or choose another --port",
            )
        else:
            yield fault(
                where, f"can't listen on {host} port {port}: {error.strerror}", "choose another --host or --port"
            )

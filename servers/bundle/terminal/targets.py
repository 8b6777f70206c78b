"""Resolves SERVER on a command line to a command with its environment, or to a URL."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from servers.catalog import CATALOG, load_catalog
from servers.common.machine import Machine, this_machine
from servers.gateway.proxy.urls import SCHEMES, display_url
from shared.transports.child.process import inherited_environment

from ..hosts.clients import CLIENTS, Client, get_client
from ..hosts.launching import local_command
from .endings import Misuse
from .parameters import unknown

FORMS = (
    "SERVER is a name in the catalog; your own FILE.py; CLIENT:NAME, an entry in the configuration of a client on "
    "this machine, such as cursor:filesystem; a URL; or - for the command after `--`. Arguments after "
    "`--` go to the server."
)


class Target(NamedTuple):
    """The target of a connection: a `command` to start, or a `url`."""

    name: str
    """Its name in messages, without secrets."""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    """The environment of the command, in addition to the basic variables that programs need."""
    directory: Path | None = None
    """The working directory of the command; None for the current one."""
    url: str = ""
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """The command line's description of the server."""

    server: str
    words: tuple[str, ...] = ()
    """The words after `--`."""
    catalog: Path = CATALOG
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def find_target(request: ServerChoice) -> Target:
    """Return the target of SERVER. Raises Misuse, or ValueError, if there is no such server."""
    if "://" in request.server:
        parts = urlsplit(request.server)
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise Misuse("the URL of a server must start with http://, https://, ws:// or wss:// and have a host")
        if request.words or request.env:
            raise Misuse("a server with a URL is started elsewhere: set its arguments and variables there")
        if parts.username is not None and "authorization" in map(str.lower, request.headers):
            raise Misuse("the URL already has a user name: use that or a token")
        return Target(display_url(request.server), url=request.server, headers=request.headers)
    if request.headers:
        raise Misuse("headers and tokens need a URL: a server that this command starts needs none")
    if request.server == "-":
        if not request.words:
            raise Misuse("- means a command: specify it after `--`")
        return Target(Path(request.words[0]).name, request.words, request.env)
    if request.server.endswith(".py"):
        return _file_target(Path(request.server).absolute(), request)
    client, colon, name = request.server.partition(":")
    if colon:
        return _client_target(client, name, request)
    catalog = load_catalog(request.catalog)
    names = [entry.name for entry in catalog.servers]
    if request.server not in names:
        clients = ", ".join(client.name for client in CLIENTS)
        raise Misuse(
            f"there is no server {request.server!r} in the catalog; available: {', '.join(names)}. You can "
            f"also specify FILE.py, CLIENT:NAME (CLIENT is one of {clients}), a URL, or - and a command after `--`"
        )
    entry = catalog.entry(request.server)
    if "stdio" not in entry.transports:
        raise Misuse(f"{entry.name} can be reached only over HTTP: specify its URL")
    return Target(entry.name, tuple(local_command(entry, request.words)), request.env)


def _file_target(file: Path, request: ServerChoice) -> Target:
    """Return a user's own server in one Python file, which this Python starts, with its options and modules from this
    process's environment. Raises Misuse if it does not exist."""
    if not file.is_file():
        raise Misuse(f"there is no file {file}")
    # MCP_TRANSPORT could take the server off stdio, where it is expected.
    own = {name: value for name, value in os.environ.items() if name.startswith("MCP_") or name == "PYTHONPATH"}
    own.pop("MCP_TRANSPORT", None)
    return Target(file.name, (sys.executable, str(file), *request.words), {**own, **request.env})


# CLIENT:NAME: a server in the configuration of a client on this machine, with its variables expanded. The modules
# that read the formats of all clients are imported on use, since most calls do not need them.


def _client_target(client_name: str, name: str, request: ServerChoice) -> Target:
    """Return the server that the client has as `name`; the project in this directory comes first, as in the clients.

    Raises Misuse, or ValueError, if it does not exist or can't be used.
    """
    client, machine, project = get_client(client_name), this_machine(), Path.cwd()
    existing: dict[str, Any] = {}
    for file in _files(client, machine, project):
        existing |= file[2]
        if name in existing:
            break
    else:
        raise Misuse(unknown("server", name, existing) + f" ({client.title})")
    path, directory, entries = file
    from ..doctor.arguments import environment_from
    from ..hosts.configured import parse_entry
    from ..hosts.variables import Variables

    server = parse_entry(client, name, entries[name])
    if server is None:
        raise Misuse(f"{name!r} belongs to an extension of {client.title}: {path} does not say how it is started")
    if not server.enabled:
        raise Misuse(f"{name!r} is disabled in {path}")
    variables = Variables(client, machine, directory)
    shown = f"{client.name}:{name}"
    if server.url is not None:
        if request.words or request.env:
            raise Misuse(f"{shown} has a URL, and is started elsewhere: set its arguments and variables there")
        headers = {key: variables.fill_in(text) for key, text in server.headers.items()}
        if server.token_variable is not None:
            headers["Authorization"] = f"Bearer {variables.value(server.token_variable)}"
        url = variables.fill_in(server.url)
        return Target(f"{shown} ({display_url(url)})", url=url, headers=headers)
    words = [variables.fill_in(word) for word in (server.command or "", *server.args)]
    server_env = {key: variables.fill_in(text) for key, text in server.env.items()}
    # Some clients pass on their whole environment. For all others, a program name has the same meaning as here.
    env = {**environment_from(client, machine), **inherited_environment(), **server_env, **request.env}
    start = entries[name].get("cwd")
    if isinstance(start, str) and start:
        directory = Path(variables.fill_in(start))
    return Target(shown, (*words, *request.words), env, directory)


def names_of(client: Client, machine: Machine, project: Path) -> list[str]:
    """Return the names of the client's servers. Raises ValueError if its files can't be read."""
    return list(dict.fromkeys(name for *_, entries in _files(client, machine, project) for name in entries))


def _files(client: Client, machine: Machine, project: Path) -> Iterator[tuple[Path, Path, dict[str, Any]]]:
    """Yield the files of the client, the directory where their servers are started, and their entries; the nearest
    first."""
    from ..hosts.configured import project_entries, read_entries

    user = client.file(machine, "user", project)
    yield user, project, project_entries(client, user, project)
    if client.project is not None:
        path = client.file(machine, "project", project)
        yield path, project, read_entries(client, path)
    yield user, Path(machine.home), read_entries(client, user)

"""Finds out what SERVER on a command line means: a command with its environment, or a URL."""

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
from .exit_codes import Misuse
from .parameters import unknown

FORMS = (
    "SERVER is a name in the catalog; your own FILE.py; CLIENT:NAME, an entry in the configuration of a client on "
    "this machine, such as cursor:filesystem; a URL; or - for the command after `--`. Arguments after "
    "`--` go to the server."
)


class Target(NamedTuple):
    """How to connect to a server: a `command` to start, or a `url`."""

    name: str
    """The name of the server in messages, without secrets."""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    """Environment variables of the command, in addition to the basic ones that programs need."""
    directory: Path | None = None
    """The working directory of the command; None for the current one."""
    url: str = ""
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """The server as described on the command line."""

    server: str
    words: tuple[str, ...] = ()
    """The words after `--`."""
    catalog: Path = CATALOG
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def find_target(request: ServerChoice) -> Target:
    """Return how to connect to the chosen server. Raises Misuse or ValueError if there is no such server, or if other
    options don't fit."""
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
    """Return how to start a user's own server in one Python file: with this Python, and with the variables of this
    process that contain its options and its import path. Raises Misuse if the file does not exist."""
    if not file.is_file():
        raise Misuse(f"there is no file {file}")
    # The server has to use stdio, whatever MCP_TRANSPORT says.
    own = {name: value for name, value in os.environ.items() if name.startswith("MCP_") or name == "PYTHONPATH"}
    own.pop("MCP_TRANSPORT", None)
    return Target(file.name, (sys.executable, str(file), *request.words), {**own, **request.env})


# CLIENT:NAME means a server in the configuration of a client on this machine. The modules that read these are
# imported when they are used, since most commands do not need them.


def _client_target(client_name: str, name: str, request: ServerChoice) -> Target:
    """Return how to connect to the server that the client's configuration calls `name`, with variables expanded. That
    of the project in this directory has priority, as in the clients.

    Raises Misuse or ValueError if there is no such server, or if it can't be used.
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
    # Some clients pass on their whole environment. For the others, use the PATH of this process, so that names of
    # programs mean the same as here.
    env = {**environment_from(client, machine), **inherited_environment(), **server_env, **request.env}
    start = entries[name].get("cwd")
    if isinstance(start, str) and start:
        directory = Path(variables.fill_in(start))
    return Target(shown, (*words, *request.words), env, directory)


def names_of(client: Client, machine: Machine, project: Path) -> list[str]:
    """Return the names of the servers in the client's configuration. Raises ValueError if a file can't be read."""
    return list(dict.fromkeys(name for *_, entries in _files(client, machine, project) for name in entries))


def _files(client: Client, machine: Machine, project: Path) -> Iterator[tuple[Path, Path, dict[str, Any]]]:
    """Yield each file of the client, the directory in which its servers are started, and its entries. Those of the
    project come first."""
    from ..hosts.configured import project_entries, read_entries

    user = client.file(machine, "user", project)
    yield user, project, project_entries(client, user, project)
    if client.project is not None:
        path = client.file(machine, "project", project)
        yield path, project, read_entries(client, path)
    yield user, Path(machine.home), read_entries(client, user)

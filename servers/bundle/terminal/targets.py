"""SERVER on a command line, made what a client connects to: a command with its environment, or a URL."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from servers.catalog import CATALOG, load_catalog
from servers.common.machine import Machine, this_machine
from servers.gateway.proxy.urls import SCHEMES, place_of
from shared.transports.child.process import inherited_environment

from ..hosts.clients import CLIENTS, Client, client_named
from ..hosts.launching import local_command
from .endings import Misuse
from .parameters import unknown

FORMS = (
    "SERVER is a name of the catalog; CLIENT:NAME, as a client on this machine has it in its configuration, such as "
    "claude-desktop:filesystem; a URL; or - for the command after `--`. What stands after `--` goes to the server."
)


class Target(NamedTuple):
    """What a client connects to: a `command` to start, or a `url`."""

    name: str
    """How messages call it; it holds no secret."""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    """What the command has in its environment, besides what programs need to find their way."""
    directory: Path | None = None
    """Where the command is started; None for here."""
    url: str = ""
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says of the server."""

    server: str
    words: tuple[str, ...] = ()
    """What stands after `--`."""
    catalog: Path = CATALOG
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def find_target(asked: Asked) -> Target:
    """What SERVER stands for. Raises Misuse, or ValueError, where it stands for nothing."""
    if "://" in asked.server:
        parts = urlsplit(asked.server)
        if parts.scheme not in SCHEMES or not parts.hostname:
            raise Misuse("the URL of a server begins with http://, https://, ws:// or wss://, and names a host")
        if asked.words or asked.env:
            raise Misuse("a server with a URL is started elsewhere: give it its arguments and variables there")
        if parts.username is not None and "authorization" in map(str.lower, asked.headers):
            raise Misuse("the URL has a user name already: give that or a token")
        return Target(place_of(asked.server), url=asked.server, headers=asked.headers)
    if asked.headers:
        raise Misuse("headers and tokens go with a URL: a server that is started needs none")
    if asked.server == "-":
        if not asked.words:
            raise Misuse("- means a command: give it after `--`")
        return Target(Path(asked.words[0]).name, asked.words, asked.env)
    client, colon, name = asked.server.partition(":")
    if colon:
        return _of_client(client, name, asked)
    catalog = load_catalog(asked.catalog)
    names = [entry.name for entry in catalog.servers]
    if asked.server not in names:
        clients = ", ".join(client.name for client in CLIENTS)
        raise Misuse(
            f"there is no server {asked.server!r} in the catalog; there are: {', '.join(names)}. Or give "
            f"CLIENT:NAME of one of {clients}; a URL; or - and a command after `--`"
        )
    entry = catalog.entry(asked.server)
    if "stdio" not in entry.transports:
        raise Misuse(f"{entry.name} is reached over HTTP only: give its URL")
    return Target(entry.name, tuple(local_command(entry, asked.words)), asked.env)


# CLIENT:NAME: a server as a client on this machine has it in its configuration, with its variables filled in. What
# reads the formats of all clients is imported where it is used, since most calls need none of it.


def _of_client(client_name: str, name: str, asked: Asked) -> Target:
    """The server that the client knows by `name`; the project in this directory comes first, as with the clients.

    Raises Misuse, or ValueError, where there is none, or it can't be used.
    """
    client, machine, project = client_named(client_name), this_machine(), Path.cwd()
    known: dict[str, Any] = {}
    for path, directory, entries in _files(client, machine, project):
        if name in entries:
            return _target(client, machine, name, entries[name], (path, directory, asked))
        known |= entries
    raise Misuse(unknown("server", name, known) + f" ({client.title})")


def names_of(client: Client, machine: Machine, project: Path) -> list[str]:
    """What the client knows. Raises ValueError where it can't be read."""
    return list(dict.fromkeys(name for *_, entries in _files(client, machine, project) for name in entries))


def _files(client: Client, machine: Machine, project: Path) -> Iterator[tuple[Path, Path, dict[str, Any]]]:
    """The files of the client, where their servers are started, and what stands in them; the nearest comes first."""
    from ..hosts.configured import of_project, read_entries

    user = client.file(machine, "user", project)
    yield user, project, of_project(client, user, project)
    if client.project is not None:
        path = client.file(machine, "project", project)
        yield path, project, read_entries(client, path)
    yield user, Path(machine.home), read_entries(client, user)


def _target(client: Client, machine: Machine, name: str, value: Any, at: tuple[Path, Path, Asked]) -> Target:
    from ..doctor.arguments import environment_from
    from ..hosts.configured import as_configured
    from ..hosts.variables import Variables

    path, directory, asked = at
    server = as_configured(client, name, value)
    if server is None:
        raise Misuse(f"{name!r} is brought by an extension of {client.title}: {path} does not say how it is started")
    if not server.enabled:
        raise Misuse(f"{name!r} is switched off in {path}")
    variables = Variables(client, machine, directory)
    shown = f"{client.name}:{name}"
    if server.url is not None:
        if asked.words or asked.env:
            raise Misuse(f"{shown} has a URL, and is started elsewhere: give it its arguments and variables there")
        headers = {key: variables.fill_in(text) for key, text in server.headers.items()}
        if server.token_variable is not None:
            headers["Authorization"] = f"Bearer {variables.value(server.token_variable)}"
        url = variables.fill_in(server.url)
        return Target(f"{shown} ({place_of(url)})", url=url, headers=headers)
    words = [variables.fill_in(word) for word in (server.command or "", *server.args)]
    given = {key: variables.fill_in(text) for key, text in server.env.items()}
    # Some clients hand on all that they have; to all others a name of a program means what it does here.
    env = {**environment_from(client, machine), **inherited_environment(), **given, **asked.env}
    start = value.get("cwd")
    if isinstance(start, str) and start:
        directory = Path(variables.fill_in(start))
    return Target(shown, (*words, *asked.words), env, directory)

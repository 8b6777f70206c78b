"""CLIENT:NAME: a server as a client on this machine has it in its configuration, with its variables filled in."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shared.transports.child.process import inherited_environment

from ..doctor.arguments import environment_from
from ..hosts.clients import Client, Machine, client_named, this_machine
from ..hosts.configured import as_configured, of_project, read_entries
from ..hosts.variables import Variables
from ..proxy.remote import place_of
from .endings import Misuse
from .parameters import unknown
from .targets import Asked, Target


def find_entry(client_name: str, name: str, asked: Asked) -> Target:
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
    user = client.file(machine, "user", project)
    yield user, project, of_project(client, user, project)
    if client.project is not None:
        path = client.file(machine, "project", project)
        yield path, project, read_entries(client, path)
    yield user, Path(machine.home), read_entries(client, user)


def _target(client: Client, machine: Machine, name: str, value: Any, at: tuple[Path, Path, Asked]) -> Target:
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

"""SERVER on a command line, made what a client connects to: a command with its environment, or a URL."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from ..catalog import CATALOG, load_catalog
from ..hosts.clients import CLIENTS
from ..hosts.launching import local_command
from ..proxy.remote import SCHEMES, place_of
from .endings import Misuse

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
        return _at_url(asked)
    if asked.headers:
        raise Misuse("headers and tokens go with a URL: a server that is started needs none")
    if asked.server == "-":
        if not asked.words:
            raise Misuse("- stands for a command, which is to be given after `--`")
        return Target(Path(asked.words[0]).name, asked.words, asked.env)
    client, colon, name = asked.server.partition(":")
    if colon:
        # It reads the formats of all clients, and most calls need none.
        from .entries import find_entry

        return find_entry(client, name, asked)
    return _of_catalog(asked)


def _at_url(asked: Asked) -> Target:
    parts = urlsplit(asked.server)
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise Misuse("the URL of a server begins with http://, https://, ws:// or wss://, and names a host")
    if asked.words or asked.env:
        raise Misuse("a server with a URL is started elsewhere: give it its arguments and variables there")
    if parts.username is not None and "authorization" in map(str.lower, asked.headers):
        raise Misuse("the URL has a user name already: give that or a token")
    return Target(place_of(asked.server), url=asked.server, headers=asked.headers)


def _of_catalog(asked: Asked) -> Target:
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

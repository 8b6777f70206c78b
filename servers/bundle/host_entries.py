"""Client configuration entries for servers outside the catalog: a remote server, or several servers as one.

The client starts a command of the bundle itself for them: `connect` or `run --join`. If the client accepts URLs, the
entry of a remote server contains its URL instead.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from servers.catalog import PACKAGE, Catalog, Entry
from servers.gateway.proxy.remote import read_token
from servers.gateway.proxy.urls import check_url
from servers.gateway.serve.configuration import read_configuration
from shared.version import __version__

from .hosts.clients import Client
from .hosts.configured import ConfiguredServer
from .hosts.launching import launch_command, launch_environment

BUNDLE = Entry(
    name="mcp-server-bundle",
    title="MCP server bundle",
    version=__version__,
    summary="The bundle's program: another server, or several joined into one.",
    description="The bundle's program, as configured in a client for `connect` or `run --join`.",
    category="web",
    module=PACKAGE,
    script="mcp-server-bundle",
    extra="all",
    transports=["stdio"],
)
"""The entry of the bundle's program, for functions that need an entry of the catalog."""
JOINED = "bundle"
"""The default name of an entry for several servers."""

_ROOTS_VARIABLES = {f"{PACKAGE}.filesystem": "MCP_FILESYSTEM_ROOTS"}
"""By module, the servers that by default open their working directory, with the variable for other directories."""


class RemoteServer(NamedTuple):
    """A server at a URL, as the user has described it for an entry."""

    url: str
    token_file: Path | None = None
    token_variable: str | None = None
    """The variable in the client's environment that contains the token."""
    via_connect: bool = False
    """True if the client shall start `connect`, even if it accepts URLs."""


def name_of(url: str) -> str:
    """Return the default name of an entry for the server at `url`: the segment of the path before `/mcp` or `/sse`,
    or else the host."""
    parts = urlsplit(url)
    path = [part for part in parts.path.split("/") if part]
    word = path[-2] if path[1:] and path[-1] in ("mcp", "sse") else parts.hostname or ""
    return re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-")[:64]


def remote_entry(client: Client, name: str, server: RemoteServer, environment: Mapping[str, str]) -> ConfiguredServer:
    """Return the entry of a remote server. It contains the URL if the client accepts URLs and the entry needs nothing
    else; otherwise, it runs `connect` with the variables in `environment`.

    Raises ValueError with a one-line message for a combination that can't work.
    """
    check_url(server.url)
    is_http = urlsplit(server.url).scheme in ("http", "https")
    if client.http is not None and is_http and not (server.via_connect or server.token_file or environment):
        return ConfiguredServer(name, url=server.url, token_variable=server.token_variable)
    if server.token_variable is not None:
        reason = f"{client.title} reaches this server through a program, which reads the token from a file"
        raise ValueError(f"use --token-file: {reason}")
    words = ["connect", server.url]
    if server.token_file is not None:
        read_token(server.token_file)
        words += ["--token-file", str(server.token_file.absolute())]
    return _command_entry(name, words, environment)


def joined_entry(
    name: str, servers: Sequence[str], config: Path | None, catalog: Catalog, environment: Mapping[str, str]
) -> ConfiguredServer:
    """Return the entry of several `servers` joined as one, which are in the catalog or in the file `config`. The
    client starts it with the variables in `environment`.

    Raises ValueError with a one-line message if a name or the file is invalid, or if a server would open the
    directory in which the client happens to start it.
    """
    words = ["run", "--join", *servers]
    if config is not None:
        configured = read_configuration(config).servers
        missing = [server for server in servers if configured is not None and server not in configured]
        if missing:
            raise ValueError(f"{config} has no server {missing[0]!r}")
        return _command_entry(name, [*words, "--config", str(config.absolute())], environment)
    if not servers:
        raise ValueError("--join needs the names of servers, or --config FILE with their settings")
    for server in servers:
        variable = _ROOTS_VARIABLES.get(catalog.entry(server).module)
        if variable is not None and not environment.get(variable):
            raise ValueError(f"{server} needs directories: pass --env {variable}=DIR, or --config FILE")
    return _command_entry(name, words, environment)


def _command_entry(name: str, words: Sequence[str], environment: Mapping[str, str]) -> ConfiguredServer:
    command, *args = launch_command(BUNDLE, words)
    return ConfiguredServer(name, command, tuple(args), {**launch_environment(), **environment})

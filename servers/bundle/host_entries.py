"""Entries of a client that are no server of the catalog: one that is elsewhere, or several servers as one.

Both start a command of the bundle itself, `connect` or `run --join`; a server elsewhere has its URL in the entry of a
client that takes URLs.
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
from .hosts.configured import Configured
from .hosts.launching import launch_command, launch_environment

BUNDLE = Entry(
    name="mcp-server-bundle",
    title="MCP server bundle",
    version=__version__,
    summary="The program of the bundle, which can be another server, or several at once.",
    description="The program of the bundle, as a client has it in an entry for `connect` or `run --join`.",
    category="web",
    module=PACKAGE,
    script="mcp-server-bundle",
    extra="all",
    transports=["stdio"],
)
"""Stands for that program where an entry of the catalog stands for a server."""
JOINED = "bundle"
"""The name of an entry for several servers, unless another is given."""

_HERE = {f"{PACKAGE}.filesystem": "MCP_FILESYSTEM_ROOTS"}
"""Servers that take the directory they are started in, by their module, and the variable that names another."""


class Elsewhere(NamedTuple):
    """A server that runs elsewhere."""

    url: str
    token_file: Path | None = None
    token_variable: str | None = None
    """The variable of the client's environment with the token."""
    through: bool = False
    """Whether it is reached through `connect` in any case."""


def name_of(url: str) -> str:
    """What the entry for a server at `url` is called, unless it is given a name: as what stands before `/mcp` in the
    path, or as the host."""
    parts = urlsplit(url)
    path = [part for part in parts.path.split("/") if part]
    word = path[-2] if path[1:] and path[-1] in ("mcp", "sse") else parts.hostname or ""
    return re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-")[:64]


def reached(client: Client, name: str, there: Elsewhere, environment: Mapping[str, str]) -> Configured:
    """The server `there`, by its URL where the client takes that and nothing else is wanted, or through `connect`,
    which has the variables of `environment`.

    Raises ValueError, in one line, for what can't work.
    """
    check_url(there.url)
    is_http = urlsplit(there.url).scheme in ("http", "https")
    if client.http is not None and is_http and not (there.through or there.token_file or environment):
        return Configured(name, url=there.url, token_variable=there.token_variable)
    if there.token_variable is not None:
        raise ValueError(f"{client.title} starts what reaches this server: give its token by --token-file")
    words = ["connect", there.url]
    if there.token_file is not None:
        read_token(there.token_file)
        words += ["--token-file", str(there.token_file.absolute())]
    return _started(name, words, environment)


def joined(
    name: str, servers: Sequence[str], config: Path | None, catalog: Catalog, environment: Mapping[str, str]
) -> Configured:
    """The `servers` as one, those of the catalog or of the file `config`, with the variables of `environment`.

    What is taken from the directory in which one stands is written down, since clients start servers anywhere. Raises
    ValueError, in one line, for a name or a file that is wrong.
    """
    words = ["run", "--join", *servers]
    if config is not None:
        known = read_configuration(config).servers
        missing = [one for one in servers if known is not None and one not in known]
        if missing:
            raise ValueError(f"{config}: there is no server {missing[0]!r} in it")
        return _started(name, [*words, "--config", str(config.absolute())], environment)
    if not servers:
        raise ValueError("--join takes the names of servers, or --config FILE with their settings")
    modules = [catalog.entry(one).module for one in servers]
    here = {_HERE[one]: str(Path.cwd()) for one in modules if one in _HERE}
    return _started(name, words, {**here, **environment})


def _started(name: str, words: Sequence[str], environment: Mapping[str, str]) -> Configured:
    command, *given = launch_command(BUNDLE, words)
    return Configured(name, command, tuple(given), {**launch_environment(), **environment})

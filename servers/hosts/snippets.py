"""What is pasted into the configuration of a client."""

import json
from collections.abc import Sequence

import tomli_w

from .clients import Client
from .configured import Configured, as_entry

__all__ = ["snippet"]


def snippet(client: Client, servers: Sequence[Configured]) -> str:
    """The part of the client's file that names `servers`, without a newline at its end.

    Raises ValueError for a server that the client can't use.
    """
    part = {client.key: {server.name: as_entry(client, server) for server in servers}}
    if client.format == "toml":
        return tomli_w.dumps(part).rstrip("\n")
    return json.dumps(part, indent=2, ensure_ascii=False)

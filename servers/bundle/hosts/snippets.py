"""What is pasted into the configuration of a client."""

import json
import re
from collections.abc import Sequence

import tomli_w

from .clients import Client
from .configured import Configured, as_entry

__all__ = ["snippet"]


def snippet(client: Client, servers: Sequence[Configured], ascii_only: bool = False) -> str:
    """The part of the client's file that names `servers`, without a newline at its end.

    With `ascii_only` it means the same, with escapes for all other letters. Raises ValueError for a server that the
    client can't use.
    """
    part = {client.key: {server.name: as_entry(client, server) for server in servers}}
    if client.format != "toml":
        return json.dumps(part, indent=2, ensure_ascii=ascii_only)
    text = tomli_w.dumps(part).rstrip("\n")
    # They stand within quotes, also in keys, where TOML has escapes.
    return re.sub(r"[^\x00-\x7f]", lambda found: f"\\U{ord(found[0]):08X}", text) if ascii_only else text

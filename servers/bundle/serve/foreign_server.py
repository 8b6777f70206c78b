"""The server that a server of others is to our clients: a bridge to it, behind what its operator allows."""

from typing import Any

from shared import Server
from shared.gateway.bridge.bridge import bridge
from shared.gateway.rules.extension import rules

from .foreign import Foreign

__all__ = ["foreign_server"]


def foreign_server(one: Foreign) -> Server[Any]:
    """A declaration to be opened."""
    return bridge(one.upstream, extensions=[rules(one.rules, name=one.name)])

"""The requests a session answers by itself, because they concern the protocol and no feature of the server."""

from typing import Any

from ..identity import Identity
from .envelope import discover
from .events import Call
from .handshake import Handshake

__all__ = ["answer"]


def answer(call: Call, identity: Identity, handshake: Handshake) -> dict[str, Any]:
    """The result of a `call` whose method is built in. Raises InvalidRequest for a second `initialize`."""
    match call.method.name:
        case "initialize":
            return handshake.initialize(call.params, identity)
        case "server/discover":
            return discover(identity)
        case "logging/setLevel":
            handshake.set_log_level(call.params.level)
    return {}

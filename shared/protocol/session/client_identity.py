"""What a client says of itself, and what it is told of a server."""

from dataclasses import dataclass
from typing import Any

from ..versions import Version
from .envelope import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION

__all__ = ["ClientIdentity", "ServerDescription", "describe"]


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """What the client says of itself, with every request or in `initialize`."""

    info: dict[str, Any]
    capabilities: dict[str, Any]
    log_level: str | None = None
    """The mildest log message wanted with stateless requests; None for none at all."""

    def envelope(self, version: Version) -> dict[str, Any]:
        """What every stateless request says in `_meta` (2026-07-28, Basic Protocol)."""
        envelope = {PROTOCOL_VERSION: version.date, CLIENT_CAPABILITIES: self.capabilities, CLIENT_INFO: self.info}
        return envelope if self.log_level is None else {**envelope, LOG_LEVEL: self.log_level}


@dataclass(frozen=True, slots=True)
class ServerDescription:
    """What the server says of itself: untrusted, as are its instructions."""

    version: str
    """The date of the protocol version that is spoken with it."""
    capabilities: dict[str, Any]
    info: dict[str, Any]
    instructions: str | None = None

    def can(self, *path: str) -> bool:
        """Whether it declared this capability, e.g. `can("resources", "subscribe")`."""
        node: Any = self.capabilities
        for name in path:
            if not isinstance(node, dict) or node.get(name) in (None, False):
                return False
            node = node[name]
        return True


def describe(version: Version, result: dict[str, Any], info: object) -> ServerDescription:
    """The server as the `result` of `initialize` or `server/discover` shows it; what is misshapen is left out."""
    capabilities, instructions = result.get("capabilities"), result.get("instructions")
    return ServerDescription(
        version.date,
        capabilities if isinstance(capabilities, dict) else {},
        info if isinstance(info, dict) else {},
        instructions if isinstance(instructions, str) else None,
    )

"""The descriptions that a client and a server send each other."""

from dataclasses import dataclass, field
from typing import Any

from ..identity import find_capability
from ..types.base import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION
from ..versions import Version, find_version


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """The client's description of itself, which `initialize` or every stateless request contains."""

    info: dict[str, Any]
    capabilities: dict[str, Any]
    log_level: str | None = None
    """The lowest level of log messages that stateless requests ask for; None for no messages."""
    extensions: dict[str, Any] = field(default_factory=dict)
    """Extensions that only stateless requests declare, in addition to those in `capabilities`."""
    task_requests: dict[str, Any] = field(default_factory=dict)
    """The capability `tasks` of 2025-11-25, which is declared only in that version."""

    def envelope(self, version: Version) -> dict[str, Any]:
        """Return the `_meta` of every stateless request (2026-07-28, Basic Protocol)."""
        capabilities = self.capabilities
        if self.extensions:
            extensions = {**capabilities.get("extensions", {}), **self.extensions}
            capabilities = {**capabilities, "extensions": extensions}
        envelope = {PROTOCOL_VERSION: version.date, CLIENT_CAPABILITIES: capabilities, CLIENT_INFO: self.info}
        return envelope if self.log_level is None else {**envelope, LOG_LEVEL: self.log_level}


@dataclass(frozen=True, slots=True)
class ServerDescription:
    """The server's description of itself, including its instructions. It is untrusted."""

    version: str
    """The date of the protocol version in use."""
    capabilities: dict[str, Any]
    info: dict[str, Any]
    instructions: str | None = None

    def can(self, *path: str) -> bool:
        """Return True if the server declared the capability at `path`, e.g. `can("resources", "subscribe")`."""
        return find_capability(self.capabilities, path) not in (None, False)

    @property
    def supports_output_schemas(self) -> bool:
        """True if the protocol version has `outputSchema`, which the results of a tool must match."""
        version = find_version(self.version)
        return version is not None and version.output_schemas

    @property
    def supports_task_requests(self) -> bool:
        """True if the protocol version has `params.task`, with which a request asks to be run as a task."""
        version = find_version(self.version)
        return version is not None and version.task_requests

    @property
    def runs_tools_as_tasks(self) -> bool:
        """True if the server also declared that a call of a tool may ask to be run as a task."""
        return self.supports_task_requests and self.can("tasks", "requests", "tools", "call")

"""The descriptions that a client and a server send each other."""

from dataclasses import dataclass, field
from typing import Any

from ..identity import find_capability
from ..types.base import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION
from ..versions import Version, find_version


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """The self-description of the client, in every request or in `initialize`."""

    info: dict[str, Any]
    capabilities: dict[str, Any]
    log_level: str | None = None
    """The lowest level of log messages to send for stateless requests; None for no messages."""
    extensions: dict[str, Any] = field(default_factory=dict)
    """Extensions declared only in stateless requests, in addition to those among the capabilities."""
    task_requests: dict[str, Any] = field(default_factory=dict)
    """The capability `tasks`, declared with a version whose requests may be run as tasks."""

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
    """The self-description of the server. It is untrusted, as are its instructions."""

    version: str
    """The date of the protocol version in use."""
    capabilities: dict[str, Any]
    info: dict[str, Any]
    instructions: str | None = None

    def can(self, *path: str) -> bool:
        """Return True if the server declared this capability, e.g. `can("resources", "subscribe")`."""
        return find_capability(self.capabilities, path) not in (None, False)

    @property
    def has_output_schemas(self) -> bool:
        """True if tool results must match the listed `outputSchema`."""
        version = find_version(self.version)
        return version is not None and version.output_schemas

    @property
    def has_task_requests(self) -> bool:
        """True if requests may ask to be run as tasks with `params.task`, if the receiver declares support."""
        version = find_version(self.version)
        return version is not None and version.task_requests

    @property
    def runs_tools_as_tasks(self) -> bool:
        """True if a call may ask to be run as a task."""
        return self.has_task_requests and self.can("tasks", "requests", "tools", "call")

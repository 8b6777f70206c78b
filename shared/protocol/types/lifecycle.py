"""Opening a session, logging, cancelling (2025-11-25, Lifecycle; Utilities)."""

from typing import Any, Literal

from pydantic import Field

from .base import Params, Wire

__all__ = ["CancelledParams", "DiscoverParams", "InitializeParams", "LogLevel", "PeerInfo", "SetLevelParams"]

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class PeerInfo(Wire):
    """What a client calls itself. Untrusted, so only the shape that is relied on is checked."""

    name: str
    version: str = ""
    title: str | None = None


class InitializeParams(Params):
    """What a client offers."""

    protocol_version: str
    capabilities: dict[str, Any]
    client_info: PeerInfo


class DiscoverParams(Params):
    """`server/discover` takes nothing but `_meta`."""


class SetLevelParams(Params):
    """The mildest level the client wants."""

    level: LogLevel


class CancelledParams(Params):
    """Which request is no longer wanted."""

    request_id: str | int = Field(union_mode="left_to_right")
    reason: str | None = None

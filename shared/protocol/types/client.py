"""What clients send: params of the requests that open a session and set the log level, and of cancellations
(2025-11-25, Lifecycle; Utilities), and their answers to requests from a server (2026-07-28, Client Features)."""

from typing import Any, Literal, Self

from pydantic import Field

from .base import Items, Meta, Params, Role, Wire

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class PeerInfo(Wire):
    """The client's description of itself. Untrusted, so only the required shape is checked."""

    name: str
    version: str = ""
    title: str | None = None


class InitializeParams(Params):
    """The params with which a client opens a session."""

    protocol_version: str
    capabilities: dict[str, Any]
    client_info: PeerInfo


class DiscoverParams(Params):
    """The params of `server/discover`, which are only `_meta`."""


class SetLevelParams(Params):
    """The params of `logging/setLevel`: the least severe level that the client wants to receive."""

    level: LogLevel


class CancelledParams(Params):
    """The params of the cancellation of a request."""

    request_id: str | int = Field(union_mode="left_to_right")
    reason: str | None = None


class ElicitResult(Wire):
    """The user's response to a form or a URL. `content` contains the values of a form that was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


class CreateMessageResult(Wire):
    """The answer of the client's model. `content` is one block; since 2025-11-25 it may also be a list of blocks."""

    role: Role
    content: dict[str, Any] | list[dict[str, Any]]
    model: str
    stop_reason: str | None = None

    @classmethod
    def of(cls, model: str, *blocks: Wire, stop_reason: str | None = "endTurn") -> Self:
        """Return the answer of the model called `model`. `stop_reason` is "toolUse" if it requests tool calls."""
        contents = [block.to_wire() for block in blocks]
        return cls(
            role="assistant",
            content=contents[0] if len(contents) == 1 else contents,
            model=model,
            stop_reason=stop_reason,
        )

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        return "".join(block.get("text", "") for block in blocks if block.get("type") == "text")


class Root(Wire):
    """A directory or file in which the user works. It is a hint, not a permission."""

    uri: str
    name: str | None = None
    meta: Meta | None = Field(default=None, alias="_meta")


class ListRootsResult(Wire):
    """The client's roots."""

    roots: Items[Root]

"""Messages of a client: the params that open a session, set the log level and cancel (2025-11-25, Lifecycle;
Utilities), and the results of a server's requests (2026-07-28, Client Features)."""

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
    """`server/discover` takes only `_meta`."""


class SetLevelParams(Params):
    """The least severe level that the client wants."""

    level: LogLevel


class CancelledParams(Params):
    """The params of the cancellation of a request."""

    request_id: str | int = Field(union_mode="left_to_right")
    reason: str | None = None


class ElicitResult(Wire):
    """The user's response to a form or a URL. `content` is set if a form was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


class CreateMessageResult(Wire):
    """The answer of the client's model. `content` is one block, or several since 2025-11-25."""

    role: Role
    content: dict[str, Any] | list[dict[str, Any]]
    model: str
    stop_reason: str | None = None

    @classmethod
    def of(cls, model: str, *blocks: Wire, stop_reason: str | None = "endTurn") -> Self:
        """Return the answer of the `model` in these blocks; the stop reason is "toolUse" if it wants tools called."""
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
    """A directory or file in which the user works. It is guidance, never a permission."""

    uri: str
    name: str | None = None
    meta: Meta | None = Field(default=None, alias="_meta")


class ListRootsResult(Wire):
    """The client's roots."""

    roots: Items[Root]

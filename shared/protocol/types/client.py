"""What a server may ask of a client: elicitation, sampling, roots (2026-07-28, Client Features)."""

from typing import Any, Literal

from pydantic import Field

from .base import Meta, Role, Wire

__all__ = ["CreateMessageResult", "ElicitResult", "ListRootsResult", "Root"]


class ElicitResult(Wire):
    """What the user did with a form or a URL. `content` is there when a form was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


class CreateMessageResult(Wire):
    """What the client's model said. `content` is one block, or several since 2025-11-25."""

    role: Role
    content: dict[str, Any] | list[dict[str, Any]]
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        return "".join(block.get("text", "") for block in blocks if block.get("type") == "text")


class Root(Wire):
    """A directory or file the user works in; guidance, never a permission."""

    uri: str
    name: str | None = None
    meta: Meta | None = Field(default=None, alias="_meta")


class ListRootsResult(Wire):
    """The client's roots."""

    roots: list[Root]

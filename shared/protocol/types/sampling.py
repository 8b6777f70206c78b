"""Requests from a server to the client's model (2026-07-28, Client Features, Sampling). Only clients import this."""

from typing import Annotated, Any, Literal

from pydantic import Field

from .base import Integer, Items, Meta, Params, Role, Wire
from .content import AudioContent, ContentBlock, ImageContent, OtherContent, TextContent
from .tools import Tool


class ToolUseContent(Wire):
    """A tool call that the model requests (since 2025-11-25)."""

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: dict[str, Any]
    meta: Meta | None = Field(default=None, alias="_meta")


class ToolResultContent(Wire):
    """The result of a tool call that the model requested (since 2025-11-25)."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: Items[ContentBlock] = Field(default_factory=list)
    structured_content: Any = None
    is_error: bool | None = None
    meta: Meta | None = Field(default=None, alias="_meta")


SamplingBlock = Annotated[
    Annotated[
        TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent, Field(discriminator="type")
    ]
    | OtherContent,
    Field(union_mode="left_to_right"),
]


class SamplingMessage(Wire):
    """One message of a conversation. `content` is one block; since 2025-11-25 it may also be a list of blocks."""

    role: Role
    content: SamplingBlock | Items[SamplingBlock]
    meta: Meta | None = Field(default=None, alias="_meta")

    @property
    def blocks(self) -> list[SamplingBlock]:
        """The content as a list."""
        return self.content if isinstance(self.content, list) else [self.content]


class ModelHint(Wire):
    """A suitable model: any whose name contains `name`."""

    name: str | None = None


class ModelPreferences(Wire):
    """The server's preferences for a model, with the best hint first and priorities from 0 to 1. The client may
    ignore all of them."""

    hints: Items[ModelHint] | None = None
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class ToolChoice(Wire):
    """Whether the model may use tools ("auto"), has to ("required"), or must not ("none")."""

    mode: Literal["auto", "required", "none"] = "auto"


class CreateMessageParams(Params):
    """A conversation for the model to continue, with at most `max_tokens` tokens."""

    messages: Items[SamplingMessage]
    max_tokens: Integer
    model_preferences: ModelPreferences | None = None
    system_prompt: str | None = None
    include_context: str | None = None
    temperature: float | None = None
    stop_sequences: Items[str] | None = None
    metadata: dict[str, Any] | None = None
    tools: Items[Tool] | None = None
    tool_choice: ToolChoice | None = None

    def fault(self) -> str | None:
        """Return the error in the tool results, or None. The message after one with tool calls must contain the
        results of all of them, and nothing else (2025-11-25, Sampling, Message Content Constraints)."""
        pending: set[str] = set()
        for message in self.messages:
            results = {block.tool_use_id for block in message.blocks if isinstance(block, ToolResultContent)}
            if results and not all(isinstance(block, ToolResultContent) for block in message.blocks):
                return "tool results are mixed with other content"
            if pending - results:
                return "the request lacks a tool result"
            pending = {block.id for block in message.blocks if isinstance(block, ToolUseContent)}
        return "the request lacks a tool result" if pending else None

"""Prompts and completion (2026-07-28, Server Features, Prompts; Utilities, Completion)."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from .base import Icon, Items, Meta, Params, Role, Wire
from .content import ContentBlock
from .tools import InputParams


def _drop_nulls(arguments: Any) -> Any:
    # Clients in languages without optional fields send null instead of omitting one.
    if not isinstance(arguments, dict):
        return arguments
    return {name: value for name, value in arguments.items() if value is not None}


_Arguments = Annotated[dict[str, str], BeforeValidator(_drop_nulls)]


class GetPromptParams(InputParams):
    """The params of `prompts/get`. The values of arguments are strings; arguments that are null are dropped."""

    name: str
    arguments: _Arguments = Field(default_factory=dict)


class PromptArgument(Wire):
    """One argument of a prompt."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool | None = None
    # Not sent: no version of the specification has a default, but some dialects (`wire/dialects`) do.
    default: str | None = Field(default=None, exclude=True)


class Prompt(Wire):
    """A prompt as listed by `prompts/list`."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: Items[PromptArgument] | None = None
    icons: Items[Icon] | None = None
    meta: Meta | None = Field(default=None, alias="_meta")


class PromptMessage(Wire):
    """One message of a rendered prompt."""

    role: Role
    content: ContentBlock


class GetPromptResult(Wire):
    """A rendered prompt."""

    description: str | None = None
    messages: Items[PromptMessage]
    meta: Meta | None = Field(default=None, alias="_meta")


class PromptReference(Wire):
    """The prompt whose argument is being completed."""

    type: Literal["ref/prompt"] = "ref/prompt"
    name: str
    title: str | None = None


class ResourceReference(Wire):
    """The resource template whose variable is being completed."""

    type: Literal["ref/resource"] = "ref/resource"
    uri: str


class CompletionArgument(Wire):
    """The argument that is being completed, and the text typed so far."""

    name: str
    value: str


class CompletionContext(Wire):
    """The arguments that are already set (since 2025-06-18); those that are null are dropped."""

    arguments: _Arguments = Field(default_factory=dict)


class CompleteParams(Params):
    """The params of `completion/complete`."""

    ref: Annotated[PromptReference | ResourceReference, Field(discriminator="type")]
    argument: CompletionArgument
    context: CompletionContext = Field(default_factory=CompletionContext)

"""The prompts of a server: what `prompts/list` shows, and how one is rendered."""

from collections.abc import Callable
from typing import Any

from ..errors import DeclarationError, InvalidParams
from ..protocol.types.base import Icon, Meta
from ..protocol.types.prompts import GetPromptResult, Prompt, PromptArgument, PromptMessage
from .context import Context
from .functions import Function
from .results import content_of

__all__ = ["Prompts", "RegisteredPrompt"]


class RegisteredPrompt:
    """One prompt, read from its function. Its arguments arrive as strings and may be typed all the same."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        icons: list[Icon] | None = None,
        meta: Meta | None = None,
    ) -> None:
        self.function = Function(function, "prompt", Context)
        self.name = name or self.function.name
        if not self.function.doc:
            raise DeclarationError(f"prompt {self.name!r} needs a docstring: users choose by it")
        prompt = Prompt(
            name=self.name,
            title=title,
            description=self.function.doc,
            arguments=[self._argument(argument) for argument in self.function.names()],
            icons=icons,
            meta=meta,
        )
        self.listed = prompt.to_wire()

    def _argument(self, name: str) -> PromptArgument:
        function = self.function
        return PromptArgument(name=name, description=function.description(name), required=function.required(name))

    async def render(self, context: Context[Any], arguments: dict[str, str]) -> dict[str, Any]:
        """The rendered prompt. Raises InvalidArguments, and what the function raises."""
        bound = self.function.bind_text(arguments)
        if self.function.context_name is not None:
            bound[self.function.context_name] = context
        value = await self.function.call(**bound)
        if isinstance(value, GetPromptResult):
            return value.to_wire()
        return {"description": self.function.doc, "messages": _messages(value)}


def _messages(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, PromptMessage):
        return [value.to_wire()]
    if isinstance(value, list):
        return [message for item in value for message in _messages(item)]
    return [{"role": "user", "content": block} for block in content_of(value)]


class Prompts:
    """A server's prompts by name, in the order of their declaration."""

    def __init__(self) -> None:
        self._prompts: dict[str, RegisteredPrompt] = {}

    def add(self, prompt: RegisteredPrompt) -> None:
        """Adds a prompt. Raises DeclarationError where the name is taken."""
        if prompt.name in self._prompts:
            raise DeclarationError(f"there is a prompt {prompt.name!r} already")
        self._prompts[prompt.name] = prompt

    def remove(self, name: str) -> bool:
        """Takes a prompt out; whether there was one."""
        return self._prompts.pop(name, None) is not None

    def __len__(self) -> int:
        return len(self._prompts)

    def listed(self) -> list[dict[str, Any]]:
        """The prompts as `prompts/list` shows them."""
        return [prompt.listed for prompt in self._prompts.values()]

    def find(self, name: str) -> RegisteredPrompt:
        """The prompt of that name. Raises InvalidParams where there is none."""
        prompt = self._prompts.get(name)
        if prompt is None:
            raise InvalidParams(f"unknown prompt: {name[:100]}")
        return prompt

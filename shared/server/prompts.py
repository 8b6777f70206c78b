"""The prompts of a server: what `prompts/list` shows, and how one is rendered.

Most are functions that were declared. Those that come from elsewhere, such as files, and come and go while the server
runs, have a source:

    class Library:
        async def page(self, context, after, most): ...
        async def get(self, context, name, arguments): ...
        async def complete(self, context, name, argument, settled): ...

    server.prompts_from(Library())

Say `changes.prompts()` when one of them comes, goes or changes.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..errors import DeclarationError, InvalidParams
from ..protocol.types.prompts import CompletionArgument, GetPromptResult, Prompt, PromptArgument, PromptMessage
from .dispatch.context import Context
from .functions.function import Function
from .results import content_of


class PromptSource(Protocol):
    """Where prompts come from that no function was declared for. `context` is that of the request; its `state` is
    what the lifespan yielded.

    `get` and `complete` are asked for whatever name a client sends. For arguments that don't fit they raise
    InvalidParams. A declared prompt of the same name hides that of the source.
    """

    async def page(self, context: Context[Any], after: str, most: int) -> Sequence[Prompt]:
        """The first `most` prompts whose name comes after `after` in an order of names that stays; "" is before all.
        Fewer than that means that there are no more."""

    async def get(self, context: Context[Any], name: str, arguments: dict[str, str]) -> GetPromptResult | None:
        """The prompt, rendered; None where there is none of that name."""

    async def complete(
        self, context: Context[Any], name: str, argument: CompletionArgument, settled: dict[str, str]
    ) -> tuple[Sequence[str], int] | None:
        """The values that an argument may have after what was typed, best first, where `settled` has those of others;
        and how many there are, for a hundred of them are sent at most. None where there is no prompt of that name."""


class RegisteredPrompt:
    """One prompt, read from its function. Its arguments arrive as strings and may be typed all the same."""

    def __init__(self, function: Callable[..., Any], name: str | None, title: str | None) -> None:
        self.function = Function(function, "prompt", Context)
        self.name = name or self.function.name
        if not self.function.doc:
            raise DeclarationError(f"prompt {self.name!r} needs a docstring: users choose by it")
        prompt = Prompt(
            name=self.name,
            title=title,
            description=self.function.doc,
            arguments=[
                PromptArgument(
                    name=argument,
                    description=self.function.description(argument),
                    required=self.function.required(argument),
                )
                for argument in self.function.names()
            ],
        )
        self.listed = prompt.to_wire()

    async def render(self, context: Context[Any], arguments: dict[str, str]) -> dict[str, Any]:
        """The rendered prompt. Raises InvalidArguments, and what the function raises."""
        value = await self.function.call(**self.function.bind_text(arguments, context))
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
    """A server's prompts by name, in the order of their declaration, and then those of the source."""

    def __init__(self) -> None:
        self.source: PromptSource | None = None
        self._prompts: dict[str, RegisteredPrompt] = {}

    def add(self, prompt: RegisteredPrompt) -> None:
        """Adds a prompt. Raises DeclarationError where the name is taken."""
        if prompt.name in self._prompts:
            raise DeclarationError(f"there is a prompt {prompt.name!r} already")
        self._prompts[prompt.name] = prompt

    def all(self) -> list[RegisteredPrompt]:
        """Every declared prompt."""
        return list(self._prompts.values())

    def remove(self, name: str) -> bool:
        """Takes a prompt out; whether there was one."""
        return self._prompts.pop(name, None) is not None

    def draw_from(self, source: PromptSource) -> None:
        """Serves those of `source` as well. Raises DeclarationError where there is a source already."""
        if self.source is not None:
            raise DeclarationError("prompts come from one source")
        self.source = source

    def __len__(self) -> int:
        return len(self._prompts)

    def listed(self) -> list[dict[str, Any]]:
        """The declared prompts as `prompts/list` shows them."""
        return [prompt.listed for prompt in self._prompts.values()]

    async def page(
        self, context: Context[Any], source: PromptSource, at: int | str, most: int
    ) -> tuple[list[dict[str, Any]], int | str | None]:
        """The prompts from `at` on, those of `source` after the declared ones, and where the next page begins; None
        at the end. A number counts declared prompts; a name is what those of the source come after."""
        shown, after = [], at
        if isinstance(at, int):
            shown, after = self.listed()[at : at + most], ""
            if at + most < len(self):
                return shown, at + most
        room = most - len(shown)
        # One more than is shown, to know whether there is a next page.
        found = await source.page(context, str(after), room + 1)
        shown += [prompt.to_wire() for prompt in found[:room] if prompt.name not in self._prompts]
        if len(found) <= room:
            return shown, None
        return shown, found[room - 1].name if room else after

    def find(self, name: str) -> RegisteredPrompt:
        """The declared prompt of that name. Raises InvalidParams where there is none."""
        prompt = self._prompts.get(name)
        if prompt is None:
            raise unknown_prompt(name)
        return prompt

    async def render(self, context: Context[Any], name: str, arguments: dict[str, str]) -> dict[str, Any]:
        """The rendered prompt. Raises InvalidParams where there is none of that name, and like
        `RegisteredPrompt.render`."""
        if self.source is None or name in self._prompts:
            return await self.find(name).render(context, arguments)
        found = await self.source.get(context, name, arguments)
        if found is None:
            raise unknown_prompt(name)
        return found.to_wire()

    async def suggest(
        self, context: Context[Any], name: str, argument: CompletionArgument, settled: dict[str, str]
    ) -> tuple[Sequence[str], int] | None:
        """What the source completes an argument with; None for a declared prompt. Raises InvalidParams where there is
        no prompt of that name."""
        if self.source is None or name in self._prompts:
            self.find(name)
            return None
        found = await self.source.complete(context, name, argument, settled)
        if found is None:
            raise unknown_prompt(name)
        return found


def unknown_prompt(name: str) -> InvalidParams:
    """What is raised where there is no prompt of that name."""
    return InvalidParams(f"unknown prompt: {name[:100]}")

"""The prompts of a server: the entries of `prompts/list`, rendering, and completion.

Most prompts are declared functions. Other prompts, such as files that are added and removed while the server runs,
come from a source:

    class Library:
        async def page(self, context, after, limit): ...
        async def get(self, context, name, arguments): ...
        async def complete(self, context, name, argument, settled): ...

    server.prompts_from(Library())

Call `changes.prompts()` when a prompt is added, removed or changed.
"""

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, Protocol, TypedDict, cast

from ..errors import DeclarationError, UnknownName
from ..protocol.records import record
from ..protocol.types.content import Content
from ..protocol.types.prompts import CompletionArgument, GetPromptResult, Prompt, PromptArgument, PromptMessage
from .dispatch.context import Context
from .functions.annotations import format_type, is_content, is_one_of
from .functions.function import Function
from .functions.location import is_own
from .results import content_of

_MESSAGES = (str, NoneType, Content, PromptMessage, GetPromptResult)
_MESSAGE_NAMES = "return text, content blocks, or messages"


class PromptSource(Protocol):
    """A source of prompts that are not declared functions. `context` is the context of the request; its `state` is
    the value that the lifespan yielded.

    `get` and `complete` are called with any name that a client sends, except those of declared prompts. They raise
    InvalidParams for invalid arguments.
    """

    async def page(self, context: Context[Any], after: str, limit: int) -> Sequence[Prompt]:
        """Return the first `limit` prompts whose names come after the name `after`, in a fixed order of names; ""
        comes before all names. If there are fewer than `limit`, return all of them."""

    async def get(self, context: Context[Any], name: str, arguments: dict[str, str]) -> GetPromptResult | None:
        """Return the rendered prompt; None if there is no prompt with that name."""

    async def complete(
        self, context: Context[Any], name: str, argument: CompletionArgument, settled: dict[str, str]
    ) -> tuple[Sequence[str], int] | None:
        """Return the values that may complete the text of an argument, best first, and their total number; at most a
        hundred are sent. `settled` is the values of arguments that are already set. None if there is no prompt with
        that name."""


@record
class PromptOptions:
    """The options of `@prompt`."""

    name: str | None = None
    title: str | None = None


class PromptKeywords(TypedDict, total=False):
    """The fields of `PromptOptions`, as keyword arguments of a decorator."""

    name: str | None
    title: str | None


class PromptSourceAtOnce(PromptSource, Protocol):
    """A source that answers some requests at once: in the same turn of the event loop, without waiting. If one of
    these methods returns None or raises, the corresponding method of `PromptSource` is called."""

    def get_at_once(self, context: Context[Any], name: str, arguments: dict[str, str]) -> GetPromptResult | None:
        """Return the rendered prompt if that is possible at once, otherwise None."""

    def complete_at_once(
        self, context: Context[Any], name: str, argument: CompletionArgument
    ) -> tuple[Sequence[str], int] | None:
        """Return the same as `complete` if that is possible at once, otherwise None."""


class RegisteredPrompt:
    """A declared prompt. Its arguments, which arrive as strings, are converted to the types of the parameters."""

    def __init__(self, function: Callable[..., Any], options: PromptOptions) -> None:
        self.function = Function(function, "prompt", Context)
        self.name = options.name or self.function.name
        if not self.function.doc:
            raise DeclarationError(f"prompt {self.name!r} needs a docstring, which helps users to choose it")
        if not is_own(function):
            self.function.check_texts()
            if not is_one_of(self.function.returns, _MESSAGES):
                returns = format_type(self.function.returns)
                raise DeclarationError(f"prompt {self.name!r} can't return {returns}: {_MESSAGE_NAMES}")
        prompt = Prompt(
            name=self.name,
            title=options.title,
            description=self.function.doc,
            arguments=[
                PromptArgument(
                    name=argument,
                    description=self.function.description(argument),
                    required=self.function.is_required(argument),
                )
                for argument in self.function.names()
            ],
        )
        self.entry = prompt.to_wire()

    async def render(self, context: Context[Any], arguments: dict[str, str]) -> dict[str, Any]:
        """Return the rendered prompt. Raises InvalidArguments, and the exceptions of the function."""
        value = await self.function.call(**self.function.bind_text(arguments, context))
        if isinstance(value, GetPromptResult):
            return value.to_wire()
        if value is None and self.function.returns is not None and not is_content(None, self.function.returns):
            raise TypeError(f"prompt {self.name!r} returned None, but declares {format_type(self.function.returns)}")
        return {"description": self.function.doc, "messages": _to_messages(value)}


def _to_messages(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, PromptMessage):
        return [value.to_wire()]
    if isinstance(value, list | tuple):
        return [message for item in value for message in _to_messages(item)]
    if not isinstance(value, str | Content | None):
        raise TypeError(f"{type(value).__name__} is not a message; {_MESSAGE_NAMES}")
    return [{"role": "user", "content": block} for block in content_of(value)]


class Prompts:
    """The prompts of a server: the declared ones, and those of the source."""

    def __init__(self) -> None:
        self.source: PromptSource | None = None
        self._source_at_once: PromptSourceAtOnce | None = None
        self._prompts: dict[str, RegisteredPrompt] = {}

    def add(self, prompt: RegisteredPrompt) -> None:
        """Add a prompt. Raises DeclarationError if the name is taken."""
        if prompt.name in self._prompts:
            raise DeclarationError(f"there is already a prompt {prompt.name!r}")
        self._prompts[prompt.name] = prompt

    def all(self) -> list[RegisteredPrompt]:
        """Return every declared prompt."""
        return list(self._prompts.values())

    def remove(self, name: str) -> bool:
        """Remove a prompt; return False if there was none."""
        return self._prompts.pop(name, None) is not None

    def add_source(self, source: PromptSource) -> None:
        """Serve the prompts of `source` as well. Raises DeclarationError if there is a source already."""
        if self.source is not None:
            raise DeclarationError("prompts can have only one source")
        self.source = source
        if hasattr(source, "get_at_once"):
            self._source_at_once = cast("PromptSourceAtOnce", source)

    def __len__(self) -> int:
        return len(self._prompts)

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of the declared prompts for `prompts/list`."""
        return [prompt.entry for prompt in self._prompts.values()]

    async def page(
        self, context: Context[Any], source: PromptSource, position: int | str, limit: int
    ) -> tuple[list[dict[str, Any]], int | str | None]:
        """Return at most `limit` entries from `position` on, with those of `source` after the declared prompts, and
        the position of the next page; None if there is none. A position that is a number is an index of declared
        prompts; one that is a string is the name of the source's last prompt on the page before."""
        entries, after = [], position
        if isinstance(position, int):
            entries, after = self.entries()[position : position + limit], ""
            if position + limit < len(self):
                return entries, position + limit
        room = limit - len(entries)
        # One more prompt than the page has room for is requested, to detect whether there is a next page.
        prompts = await source.page(context, str(after), room + 1)
        entries += [prompt.to_wire() for prompt in prompts[:room] if prompt.name not in self._prompts]
        if len(prompts) <= room:
            return entries, None
        return entries, prompts[room - 1].name if room else after

    def find(self, name: str) -> RegisteredPrompt:
        """Return the declared prompt with that name. Raises UnknownName if there is none."""
        prompt = self._prompts.get(name)
        if prompt is None:
            raise unknown_prompt(name)
        return prompt

    async def render(self, context: Context[Any], name: str, arguments: dict[str, str]) -> dict[str, Any]:
        """Return the rendered prompt. Raises UnknownName if there is none with that name, and the same errors as
        `RegisteredPrompt.render`."""
        if self.source is None or name in self._prompts:
            return await self.find(name).render(context, arguments)
        result = await self.source.get(context, name, arguments)
        if result is None:
            raise unknown_prompt(name)
        return result.to_wire()

    def render_at_once(self, context: Context[Any], name: str, arguments: dict[str, str]) -> dict[str, Any] | None:
        """Return the rendered prompt if the source can render it at once; otherwise None."""
        if self._source_at_once is None or name in self._prompts:
            return None
        result = self._source_at_once.get_at_once(context, name, arguments)
        return None if result is None else result.to_wire()

    def suggest_at_once(
        self, context: Context[Any], name: str, argument: CompletionArgument
    ) -> tuple[Sequence[str], int] | None:
        """Return the source's values for an argument, and their number, if it has them at once; otherwise None."""
        if self._source_at_once is None or name in self._prompts:
            return None
        return self._source_at_once.complete_at_once(context, name, argument)

    async def suggest(
        self, context: Context[Any], name: str, argument: CompletionArgument, settled: dict[str, str]
    ) -> tuple[Sequence[str], int] | None:
        """Return the source's values for an argument, and their total number; None for a declared prompt. Raises
        UnknownName if there is no prompt with that name."""
        if self.source is None or name in self._prompts:
            self.find(name)
            return None
        values = await self.source.complete(context, name, argument, settled)
        if values is None:
            raise unknown_prompt(name)
        return values


def unknown_prompt(name: str) -> UnknownName:
    """Return the error for an unknown prompt."""
    return UnknownName(f"unknown prompt: {name[:100]}")

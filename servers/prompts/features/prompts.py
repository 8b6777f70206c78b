"""The prompts of the libraries, as the protocol has them."""

from collections.abc import Mapping, Sequence

from anyio import to_thread

from shared import (
    AudioContent,
    CompletionArgument,
    Context,
    EmbeddedResource,
    Features,
    GetPromptResult,
    ImageContent,
    InvalidParams,
    MissingCapability,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
    elicit_form,
)
from shared.text import join_lines

from ..arguments import (
    Completion,
    build_form,
    complete,
    find_missing,
    format_default,
    format_filled,
    format_names,
    parse_values,
)
from ..errors import PromptError
from ..format import definitions
from ..library.folder import find_paths
from ..library.libraries import Libraries
from ..templates.rendering import Rendered, Text
from .context import Ctx, Opened, make_refusal
from .resources import make_contents

_KEY = "arguments"


class LibraryPrompts:
    """The prompts of all libraries. What reads files or renders is done in a thread, in turn."""

    async def page(self, context: Context[Opened], after: str, most: int) -> Sequence[Prompt]:
        """The next prompts in the order of names, without those whose file is broken."""
        libraries, watch = context.state.libraries, context.state.watch
        async with context.turn():
            found = await to_thread.run_sync(_list_current, libraries, after, most)
            if found is None:
                await watch.look()
                found = await to_thread.run_sync(list_page, libraries, after, most)
        return found

    async def get(self, context: Context[Opened], name: str, arguments: dict[str, str]) -> GetPromptResult | None:
        """The prompt, rendered; where required arguments are missing, the user is asked for them. Raises
        InvalidParams."""
        libraries = context.state.libraries
        if not await _has(context.state, name) and not libraries.find_missing():
            return None
        try:
            async with context.turn():
                found = await to_thread.run_sync(_render, libraries, name, arguments)
            if not isinstance(found, GetPromptResult):
                filled = await _ask(context, name, found)
                async with context.turn():
                    found = await to_thread.run_sync(_render, libraries, name, {**arguments, **filled})
        except PromptError as error:
            raise make_refusal(error) from None
        if not isinstance(found, GetPromptResult):
            raise _make_missing(name, found)
        return found

    async def complete(
        self, context: Context[Opened], name: str, argument: CompletionArgument, settled: dict[str, str]
    ) -> tuple[Sequence[str], int] | None:
        """What the argument could be. Raises InvalidParams for one that the prompt does not have."""
        if not await _has(context.state, name):
            return None
        try:
            async with context.turn():
                return await to_thread.run_sync(_complete, context.state, name, argument)
        except PromptError as error:
            raise make_refusal(error) from None


features = Features[Opened]()
features.prompts_from(LibraryPrompts())


async def _has(opened: Opened, name: str) -> bool:
    """Whether there is a prompt of this name. Where a look is due, it is taken before the answer is no."""
    if name not in opened.libraries and await to_thread.run_sync(opened.libraries.is_behind):
        await opened.watch.look()
    return name in opened.libraries


def _list_current(libraries: Libraries, after: str, most: int) -> list[Prompt] | None:
    """The page; None where the libraries are behind what is in their folders. Another replica may have seen that
    before this one and told the client of it, who asks here. Blocks."""
    return None if libraries.is_behind() else list_page(libraries, after, most)


def list_page(libraries: Libraries, after: str, most: int) -> list[Prompt]:
    """The next prompts in the order of names, without those whose file is broken. Blocks."""
    return [_make_prompt(one) for one in libraries.page(after, most)]


def _make_prompt(prompt: definitions.Prompt) -> Prompt:
    arguments = [
        PromptArgument(
            name=one.name,
            title=_join_optional(one.title),
            description=_join_optional(one.description),
            required=one.required,
            default=format_default(one),
        )
        for one in prompt.arguments
    ]
    return Prompt(
        name=prompt.name,
        title=_join_optional(prompt.title),
        description=join_lines(prompt.description),
        arguments=arguments,
    )


def _join_optional(text: str | None) -> str | None:
    return None if text is None else join_lines(text)


def _render(
    libraries: Libraries, name: str, given: Mapping[str, str]
) -> GetPromptResult | tuple[definitions.Argument, ...]:
    """The prompt, rendered; or the required arguments that are missing where all others are right. Raises
    PromptError."""
    rendering = libraries.rendering(name)
    prompt = rendering.prompt
    try:
        bound = parse_values(prompt, given)
    except PromptError as error:
        if error.code == "missing_arguments":
            return find_missing(prompt, given)
        raise
    messages = [make_message(name, one) for one in rendering.render(bound)]
    return GetPromptResult(description=join_lines(prompt.description), messages=messages)


async def _ask(ctx: Ctx, name: str, absent: Sequence[definitions.Argument]) -> dict[str, str]:
    """What the user gives for the arguments. Raises InvalidParams where nobody can be asked, or nothing is given."""
    question = elicit_form(f"The prompt {name!r} needs more to begin with.", build_form(absent))
    try:
        answer = (await ctx.inputs({_KEY: question}))[_KEY]
    except MissingCapability:
        raise _make_missing(name, absent) from None
    if answer.action != "accept":
        raise _make_missing(name, absent, "; the user did not give them")
    return format_filled(answer.content or {}, absent)


def _make_missing(name: str, absent: Sequence[definitions.Argument], why: str = "") -> InvalidParams:
    return InvalidParams(f"missing_arguments: the prompt {name!r} needs: {format_names(absent)}{why}")


def _complete(opened: Opened, name: str, argument: CompletionArgument) -> Completion:
    known = {one.name: one for one in opened.libraries.prompt(name).arguments}
    if argument.name not in known:
        suggestion = f"Its arguments: {format_names(known.values())}."
        raise PromptError("bad_arguments", f"{argument.name[:64]!r} is not an argument of it", suggestion)
    paths = find_paths(opened.files, argument.value) if known[argument.name].type == "file" else ()
    return complete(known[argument.name], argument.value, paths)


def make_message(name: str, rendered: Rendered) -> PromptMessage:
    """A message of the prompt `name`."""
    content = rendered.content
    block: TextContent | ImageContent | AudioContent | EmbeddedResource
    if isinstance(content, Text):
        block = TextContent(text=content.text)
    elif content.kind == "image":
        block = ImageContent.of(content.data, content.mime_type)
    elif content.kind == "audio":
        block = AudioContent.of(content.data, content.mime_type)
    else:
        block = EmbeddedResource(resource=make_contents(name, content))
    return PromptMessage(role=rendered.role, content=block)

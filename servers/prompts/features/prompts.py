"""The prompts of the libraries, as the protocol defines them."""

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
    """The prompts of all libraries. File access and rendering run in a thread, in the client's turn."""

    async def page(self, context: Context[Opened], after: str, most: int) -> Sequence[Prompt]:
        """Return the next prompts by name, without those whose file is broken."""
        libraries, watch = context.state.libraries, context.state.watch
        async with context.turn():
            prompts = await to_thread.run_sync(_list_current, libraries, after, most)
            if prompts is None:
                await watch.look()
                prompts = await to_thread.run_sync(list_page, libraries, after, most)
        return prompts

    async def get(self, context: Context[Opened], name: str, arguments: dict[str, str]) -> GetPromptResult | None:
        """Return the rendered prompt; the user is asked for missing required arguments. Raises InvalidParams."""
        libraries = context.state.libraries
        if not await _has(context.state, name) and not libraries.find_missing():
            return None
        try:
            async with context.turn():
                rendered = await to_thread.run_sync(_render, libraries, name, arguments)
            if not isinstance(rendered, GetPromptResult):
                filled = await _ask(context, name, rendered)
                async with context.turn():
                    rendered = await to_thread.run_sync(_render, libraries, name, {**arguments, **filled})
        except PromptError as error:
            raise make_refusal(error) from None
        if not isinstance(rendered, GetPromptResult):
            raise _make_missing(name, rendered)
        return rendered

    async def complete(
        self, context: Context[Opened], name: str, argument: CompletionArgument, settled: dict[str, str]
    ) -> tuple[Sequence[str], int] | None:
        """Return completions of the argument. Raises InvalidParams for an argument that the prompt does not have."""
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
    """Return True if there is a prompt with this name. If the libraries are behind, they are read again before the
    answer is False."""
    if name not in opened.libraries and await to_thread.run_sync(opened.libraries.is_behind):
        await opened.watch.look()
    return name in opened.libraries


def _list_current(libraries: Libraries, after: str, most: int) -> list[Prompt] | None:
    """Return the page; None if the libraries are behind their folders. Another replica may have detected the change
    before this one, and notified the client that sends this request. Blocks."""
    return None if libraries.is_behind() else list_page(libraries, after, most)


def list_page(libraries: Libraries, after: str, most: int) -> list[Prompt]:
    """Return the next prompts by name, without those whose file is broken. Blocks."""
    return [_make_prompt(prompt) for prompt in libraries.page(after, most)]


def _make_prompt(prompt: definitions.Prompt) -> Prompt:
    arguments = [
        PromptArgument(
            name=argument.name,
            title=_join_optional(argument.title),
            description=_join_optional(argument.description),
            required=argument.required,
            default=format_default(argument),
        )
        for argument in prompt.arguments
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
    libraries: Libraries, name: str, arguments: Mapping[str, str]
) -> GetPromptResult | tuple[definitions.Argument, ...]:
    """Return the rendered prompt; or the missing required arguments if all others are valid. Raises PromptError."""
    rendering = libraries.rendering(name)
    prompt = rendering.prompt
    try:
        bound = parse_values(prompt, arguments)
    except PromptError as error:
        if error.code == "missing_arguments":
            return find_missing(prompt, arguments)
        raise
    messages = [make_message(name, message) for message in rendering.render(bound)]
    return GetPromptResult(description=join_lines(prompt.description), messages=messages)


async def _ask(ctx: Ctx, name: str, absent: Sequence[definitions.Argument]) -> dict[str, str]:
    """Return the user's values for the arguments. Raises InvalidParams if the user can't be asked, or gives no
    values."""
    question = elicit_form(f"The prompt {name!r} needs more information first.", build_form(absent))
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
    declared = {item.name: item for item in opened.libraries.prompt(name).arguments}
    if argument.name not in declared:
        suggestion = f"Its arguments: {format_names(declared.values())}."
        raise PromptError("bad_arguments", f"{argument.name[:64]!r} is not an argument of it", suggestion)
    paths = find_paths(opened.files, argument.value) if declared[argument.name].type == "file" else ()
    return complete(declared[argument.name], argument.value, paths)


def make_message(name: str, rendered: Rendered) -> PromptMessage:
    """Return a message of the prompt `name`."""
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

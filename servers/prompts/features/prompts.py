"""Offers the prompts of the libraries as prompts of the protocol."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from anyio import to_thread

from servers.common.images import fault_of
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
from ..templates.budget import RENDER_SECONDS
from ..templates.rendering import RenderedMessage, Rendering, Text
from .context import LibraryState, make_refusal
from .resources import make_contents

_INPUT_KEY = "arguments"
_NO_THREAD_SECONDS = 0.001
"""Time limit in seconds for a rendering that needs no thread."""
_LATE_SECONDS = 0.005
"""If a rendering without a thread takes more seconds of processor time than this, its prompt is rendered only in
threads until the library changes."""
_MAX_WITHOUT_THREAD = 10_000
"""Maximum number of characters in the arguments of a rendering without a thread. A completion without a thread has at
most a hundredth as many values to suggest."""


class LibraryPrompts:
    """Provides the prompts of all libraries. Threads read files and render, for one request of each client at a
    time."""

    async def page(self, context: Context[LibraryState], after: str, limit: int) -> Sequence[Prompt]:
        """Return the next prompts after the name `after`, sorted by name, without those whose file is broken."""
        libraries, watch = context.state.libraries, context.state.watch
        async with context.turn():
            # Another replica may have detected a change before this one, and caused this request by a notification.
            prompts = await to_thread.run_sync(
                lambda: None if libraries.is_behind() else list_page(libraries, after, limit)
            )
            if prompts is None:
                await watch.scan()
                prompts = await to_thread.run_sync(list_page, libraries, after, limit)
        return prompts

    async def get(
        self, context: Context[LibraryState], name: str, arguments: dict[str, str]
    ) -> GetPromptResult | None:
        """Return the rendered prompt; None if there is no such prompt. Ask the user for required arguments that are
        missing. Raises InvalidParams."""
        libraries = context.state.libraries
        if not await _has_prompt(context.state, name) and not libraries.find_missing():
            return None
        try:
            async with context.turn():
                rendered = await to_thread.run_sync(_render, libraries, name, arguments)
            if not isinstance(rendered, GetPromptResult):
                form = elicit_form(f"The prompt {name!r} needs more information first.", build_form(rendered))
                try:
                    result = (await context.inputs({_INPUT_KEY: form}))[_INPUT_KEY]
                except MissingCapability:
                    raise _make_missing_error(name, rendered) from None
                if result.action != "accept":
                    raise _make_missing_error(name, rendered, "; the user did not provide them")
                filled = format_filled(result.content or {}, rendered)
                async with context.turn():
                    rendered = await to_thread.run_sync(_render, libraries, name, {**arguments, **filled})
        except PromptError as error:
            raise make_refusal(error) from None
        if not isinstance(rendered, GetPromptResult):
            raise _make_missing_error(name, rendered)
        return rendered

    async def complete(
        self, context: Context[LibraryState], name: str, argument: CompletionArgument, settled: dict[str, str]
    ) -> tuple[Sequence[str], int] | None:
        """Return completions of the argument; None if there is no such prompt. Raises InvalidParams for an argument
        that the prompt does not have."""
        state = context.state
        if not await _has_prompt(state, name):
            return None

        def find_completions() -> Completion:
            declared = {item.name: item for item in state.libraries.prompt(name).arguments}
            if argument.name not in declared:
                reason = f"{argument.name[:64]!r} is not an argument of this prompt"
                raise PromptError("bad_arguments", reason, f"Its arguments: {format_names(declared.values())}.")
            paths = find_paths(state.files, argument.value) if declared[argument.name].type == "file" else ()
            return complete(declared[argument.name], argument.value, paths)

        try:
            async with context.turn():
                return await to_thread.run_sync(find_completions)
        except PromptError as error:
            raise make_refusal(error) from None

    def get_at_once(
        self, context: Context[LibraryState], name: str, arguments: dict[str, str]
    ) -> GetPromptResult | None:
        """Return the rendered prompt if rendering it takes only a moment; None if a thread has to render it, or would
        get an error."""
        rendering = context.state.libraries.get_compiled(name)
        if rendering is None or not rendering.is_quick or sum(map(len, arguments.values())) > _MAX_WITHOUT_THREAD:
            return None
        start = time.thread_time()
        try:
            values = parse_values(rendering.prompt, arguments)
            return _make_result(name, rendering, values, _NO_THREAD_SECONDS)
        except PromptError:
            return None
        finally:
            if time.thread_time() - start > _LATE_SECONDS:
                rendering.is_quick, rendering.was_late = False, True

    def complete_at_once(
        self, context: Context[LibraryState], name: str, argument: CompletionArgument
    ) -> Completion | None:
        """Return completions of the argument; None if a thread is needed, to read the prompt, to find files, or to
        search many values."""
        rendering = context.state.libraries.get_compiled(name)
        declared = () if rendering is None else rendering.prompt.arguments
        for declared_argument in declared:
            if declared_argument.name == argument.name and declared_argument.type != "file":
                is_long = len(declared_argument.enum) + len(declared_argument.examples) > _MAX_WITHOUT_THREAD // 100
                return None if is_long else complete(declared_argument, argument.value)
        return None


features = Features[LibraryState]()
features.prompts_from(LibraryPrompts())


async def _has_prompt(state: LibraryState, name: str) -> bool:
    """Return True if there is a prompt with this name."""
    # Before returning False, read libraries again whose folders have changed.
    if name not in state.libraries and await to_thread.run_sync(state.libraries.is_behind):
        await state.watch.scan()
    return name in state.libraries


def list_page(libraries: Libraries, after: str, limit: int) -> list[Prompt]:
    """Return the next prompts after the name `after`, sorted by name, without those whose file is broken. Blocks."""
    prompts: list[Prompt] = []
    for prompt in libraries.page(after, limit):
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
        title, description = _join_optional(prompt.title), join_lines(prompt.description)
        prompts.append(Prompt(name=prompt.name, title=title, description=description, arguments=arguments))
    return prompts


def _join_optional(text: str | None) -> str | None:
    return None if text is None else join_lines(text)


def _render(
    libraries: Libraries, name: str, arguments: Mapping[str, str]
) -> GetPromptResult | tuple[definitions.Argument, ...]:
    """Return the rendered prompt, or if required arguments are missing and the others are valid, the missing ones.
    Raises PromptError."""
    rendering = libraries.rendering(name)
    prompt = rendering.prompt
    try:
        bound = parse_values(prompt, arguments)
    except PromptError as error:
        if error.code == "missing_arguments":
            return find_missing(prompt, arguments)
        raise
    start = time.thread_time()
    result = _make_result(name, rendering, bound)
    # A prompt with files is never quick, since the files are read each time.
    is_bounded = not (rendering.embeds or rendering.was_late)
    rendering.is_quick = is_bounded and time.thread_time() - start < _NO_THREAD_SECONDS
    return result


def _make_result(
    name: str, rendering: Rendering, values: Mapping[str, Any], seconds: float = RENDER_SECONDS
) -> GetPromptResult:
    messages = [make_message(name, message) for message in rendering.render(values, seconds)]
    return GetPromptResult(description=join_lines(rendering.prompt.description), messages=messages)


def _make_missing_error(name: str, missing: Sequence[definitions.Argument], explanation: str = "") -> InvalidParams:
    return InvalidParams(f"missing_arguments: the prompt {name!r} needs: {format_names(missing)}{explanation}")


def make_message(name: str, rendered: RenderedMessage) -> PromptMessage:
    """Return a message of the prompt `name`. An image that models refuse is sent as a resource: some hosts can't
    recover from it."""
    content = rendered.content
    block: TextContent | ImageContent | AudioContent | EmbeddedResource
    if isinstance(content, Text):
        block = TextContent(text=content.text)
    elif content.kind == "image" and fault_of(content.data) is None:
        block = ImageContent.of(content.data, content.mime_type)
    elif content.kind == "audio":
        block = AudioContent.of(content.data, content.mime_type)
    else:
        block = EmbeddedResource(resource=make_contents(name, content))
    return PromptMessage(role=rendered.role, content=block)

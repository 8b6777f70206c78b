"""The resources for prompts: their source, their rendered text, and an index of the libraries. Clients can subscribe
to them."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from anyio import to_thread

from shared import (
    BlobResourceContents,
    Features,
    InvalidParams,
    Resource,
    ResourceNotFound,
    Run,
    TextResourceContents,
)
from shared.protocol.uri_template import UriTemplate
from shared.server.dispatch.changes import Changes
from shared.text import escape, format_count, join_lines

from ..arguments import parse_values
from ..errors import PromptError
from ..library.libraries import Libraries
from ..library.snapshot import ScanChanges
from ..templates.rendering import EmbeddedFile, RenderedMessage, Text
from .context import Ctx, LibraryState, make_refusal

INDEX = "prompt://"
SOURCE = "prompt://{name}"
RENDERED = "prompt://{name}/rendered{?args*}"
FILE = "prompt://{name}/files/{+path}"
_MARKDOWN = "text/markdown"
_MAX_LISTED = 1_000
"""Maximum number of prompts in the index and in the list of resources."""
_MAX_ARGUMENTS = 64
_SKILL = "skill://{name}/{+file}"
_KEY_SUFFIXES = {SOURCE: "", RENDERED: "/rendered", FILE: "/files", _SKILL: "/skill"}
"""The URI templates to which a client can subscribe, each with the suffix of its subscription keys."""
_TEMPLATES = {UriTemplate(uri): suffix for uri, suffix in _KEY_SUFFIXES.items()}

features = Features[LibraryState]()


@features.resource(INDEX, name="library", title="The prompt library", mime_type="application/json")
async def read_index(ctx: Ctx) -> str:
    """The libraries, the published prompts with their files, and problems in the files, as JSON."""
    async with ctx.turn():
        return await to_thread.run_sync(_build_index, ctx.state.libraries)


@features.resource(SOURCE, name="prompt", title="A prompt as it is written", mime_type=_MARKDOWN)
async def read_source(ctx: Ctx, name: str) -> str | bytes:
    """The file of a prompt. If it is no longer valid, its last valid version."""
    try:
        data = ctx.state.libraries.library(name).source(name)
    except PromptError:
        raise ResourceNotFound(format_uri(name)) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data


@features.resource(RENDERED, name="rendered", title="A prompt with its arguments filled in", mime_type=_MARKDOWN)
async def read_rendered(ctx: Ctx, name: str, args: str = "") -> str:
    """The prompt's text, with its arguments given in the query. Several messages have their roles as headings."""
    if name not in ctx.state.libraries:
        raise ResourceNotFound(f"{format_uri(name)}/rendered" + (f"?{args}" if args else ""))
    try:
        pairs = parse_qsl(args, keep_blank_values=True, max_num_fields=_MAX_ARGUMENTS)
    except ValueError:
        raise InvalidParams(f"bad_arguments: the query has more than {_MAX_ARGUMENTS} arguments") from None
    arguments = dict(pairs)
    if len(arguments) < len(pairs):
        raise InvalidParams("bad_arguments: an argument is given twice")
    try:
        async with ctx.turn():
            messages = await to_thread.run_sync(_render, ctx.state.libraries, name, arguments)
    except PromptError as error:
        raise make_refusal(error) from None
    if len(messages) == 1:
        return _message_text(messages[0])
    return "\n\n".join(f"## {message.role}\n\n{_message_text(message)}" for message in messages)


@features.resource(FILE, name="embedded", title="A file in the messages of a prompt")
async def read_file(ctx: Ctx, name: str, path: str) -> TextResourceContents | BlobResourceContents:
    """A file that a message of the prompt includes; no other file."""
    try:
        file = await to_thread.run_sync(lambda: ctx.state.libraries.rendering(name).get_file(unquote(path)))
    except PromptError:
        raise ResourceNotFound(f"{format_uri(name)}/files/{path}") from None
    return make_contents(name, file)


@features.lists_resources
async def list_resources(ctx: Ctx) -> list[Resource]:
    """The first prompts, in the order of names."""
    async with ctx.turn():
        prompts = await to_thread.run_sync(ctx.state.libraries.page, "", _MAX_LISTED)
    return [
        Resource(
            uri=format_uri(prompt.name),
            name=prompt.name,
            title=None if prompt.title is None else join_lines(prompt.title),
            description=join_lines(prompt.description),
            mime_type=_MARKDOWN,
        )
        for prompt in prompts
    ]


@features.completes("resource", SOURCE, "name")
@features.completes("resource", RENDERED, "name")
@features.completes("resource", FILE, "name")
async def complete_name(ctx: Ctx, typed: str, _settled: dict[str, str]) -> list[str]:
    """The prompts whose names begin with the typed text, then those whose names contain it."""
    prefix = typed.casefold()
    names = [name for name in ctx.state.libraries.names if prefix in name.casefold()]
    return sorted(names, key=lambda name: not name.casefold().startswith(prefix))


async def subscribe(ctx: Ctx, uri: str) -> str:
    """Return the key of a subscription to the index, a prompt or its skill. Raises ResourceNotFound."""
    if uri == INDEX:
        return INDEX
    for template, suffix in _TEMPLATES.items():
        values = template.match(uri)
        # The key depends only on the name, so a subscription stays valid if the prompt is deleted and created again.
        if values is not None and values["name"] in ctx.state.libraries:
            key = format_uri(values["name"]) + suffix
            ctx.state.subscribed[key] = values["name"]
            return key
    raise ResourceNotFound(uri)


async def unsubscribe(run: Run[LibraryState], key: str) -> None:
    """Forget a key that has no more subscriptions."""
    run.state.subscribed.pop(key, None)


def notify(state: LibraryState, changes: Changes, changed: ScanChanges) -> None:
    """Notify clients of changes: of changed lists, and of changed resources to which they have subscribed."""
    changes.resource(INDEX)
    if changed.names:
        changes.prompts()
    if not changed.names and not changed.other_files_changed:
        return
    changes.resources()
    for key, name in state.subscribed.items():
        # The source of a prompt depends only on its own file. The other resources may depend on other files too.
        if name in changed.names or key != format_uri(name):
            changes.resource(key)


def format_uri(name: str) -> str:
    """Return the URI of a prompt."""
    return f"{INDEX}{quote(name, safe='')}"


def make_contents(name: str, file: EmbeddedFile) -> TextResourceContents | BlobResourceContents:
    """Return a file in the messages of the prompt `name`, as a resource."""
    uri = f"{format_uri(name)}/files/{quote(file.path)}"
    try:
        return TextResourceContents(uri=uri, mime_type=file.mime_type, text=file.data.decode())
    except UnicodeDecodeError:
        return BlobResourceContents.of(uri, file.data, file.mime_type)


def _render(libraries: Libraries, name: str, arguments: Mapping[str, str]) -> tuple[RenderedMessage, ...]:
    rendering = libraries.rendering(name)
    return rendering.render(parse_values(rendering.prompt, arguments))


def _message_text(message: RenderedMessage) -> str:
    content = message.content
    if isinstance(content, Text):
        return content.text
    try:
        if content.kind == "resource":
            return f"{escape(content.path)}:\n\n{content.data.decode()}"
    except UnicodeDecodeError:
        pass
    return f"[{content.kind}: {escape(content.path)}, {content.mime_type}, {len(content.data):,} bytes]"


def _build_index(libraries: Libraries) -> str:
    library_numbers = {item.root: number for number, item in enumerate(libraries.all)}
    prompts: list[dict[str, Any]] = []
    for prompt in libraries.page("", _MAX_LISTED):
        title, tags = join_lines(prompt.title or ""), list(map(join_lines, prompt.tags))
        entry = {"name": prompt.name, "title": title, "tags": tags, "uri": format_uri(prompt.name)}
        try:
            library = libraries.library(prompt.name)
            where = {"library": library_numbers[library.root], "file": escape(library.path(prompt.name))}
        except PromptError:  # it has been deleted
            where = {}
        prompts.append({key: value for key, value in entry.items() if value} | where)
    library_entries: list[dict[str, Any]] = []
    for item in libraries.all:
        library_entries.append({"folder": escape(item.root.name), "prompts": item.count()})
        if (origin := libraries.origins.get(item.root)) is not None:
            library_entries[-1] |= {"from": origin.shown, "commit": origin.commit}
    # `count` has parsed all files, so all problems are known.
    problems = [
        {
            "library": library_numbers[root],
            "file": escape(problem.path),
            "line": problem.line,
            "reason": problem.reason,
        }
        for root, problem in libraries.problems()
    ]
    if (rest := len(problems) - _MAX_LISTED) > 0:
        reason = f"{format_count(rest, 'more problem')}, listed by the command lint"
        problems[_MAX_LISTED:] = [{"library": 0, "file": "", "line": None, "reason": reason}]
    index: dict[str, Any] = {
        "libraries": library_entries,
        "prompts": prompts,
        "truncated": len(prompts) == _MAX_LISTED < len(libraries.names),
        "problems": problems,
    }
    return json.dumps(index, ensure_ascii=False)

"""What is asked of a server by our client, and what has to come of it: one function for each row of the matrix."""

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from shared.client.client import Client
from shared.client.connection.changes import Change
from shared.client.options import ClientOptions
from shared.client.skills.skills import ServerSkills
from shared.errors import McpError, PeerError
from shared.protocol.types.client import CreateMessageResult, ElicitResult, ListRootsResult
from shared.protocol.types.content import BlobResourceContents, TextContent, TextResourceContents
from shared.protocol.types.elicitation import ElicitForm
from shared.protocol.types.prompts import PromptReference
from shared.protocol.types.sampling import CreateMessageParams
from shared.protocol.types.tools import CallToolResult
from tests.checks.interop.others.driving import FIELDS, ROOTS

ROWS = (
    "opens", "ping", "lists", "calls", "data", "fails", "unknown", "reads", "bytes", "template", "prompt", "skills",
    "complete", "progress", "log", "cancels", "form", "model", "roots", "changes", "relists", "closes",
)  # fmt: skip
CLOSES = ROWS[-1]
FOLDER, SITE = "<the folder>", "<the site>"
"""Stand in arguments for the directory that the server was given, and for the URL of a web site."""
NOTE = "a note\n"
"""What `note.txt` in that directory says."""
MODEL = "lake"
"""What our model says, whatever it is asked."""


@dataclass
class Ears:
    """What the client was told outside of results."""

    logs: list[tuple[str, Any]] = field(default_factory=list)

    def options(self, mode: str) -> ClientOptions:
        """Those of a client that answers whatever a server may ask, and that keeps the log here."""
        return ClientOptions(
            mode=mode,
            elicit=fill_in,
            sample=answer,
            roots=ListRootsResult.model_validate(ROOTS).roots,
            on_log=lambda level, _logger, said: self.logs.append((level, said)),
            log_level="info",
        )


@dataclass(frozen=True)
class Talk:
    """A client that is connected, and what it hears."""

    client: Client
    ears: Ears
    folder: str
    site: str

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None, **how: Any) -> CallToolResult:
        """The result of a tool."""
        return await self.client.call_tool(tool, self.filled(arguments or {}), **how)

    def filled(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with what `FOLDER` and `SITE` stand for."""
        text = json.dumps(arguments).replace(FOLDER, self.folder).replace(SITE, self.site)
        return dict(json.loads(text))


Row = Callable[[Talk], Awaitable[None]]


async def fill_in(form: ElicitForm) -> ElicitResult:
    """What the user says to a form: what is required."""
    return ElicitResult(action="accept", content={name: FIELDS[name] for name in form.requested_schema["required"]})


async def answer(_asked: CreateMessageParams) -> CreateMessageResult:
    """What the model says."""
    return CreateMessageResult.of("parrot", TextContent(text=MODEL))


def opens(version: str, name: str) -> Row:
    """The server speaks that version, and has that name."""

    async def row(talk: Talk) -> None:
        server = talk.client.server
        assert (server.version, server.info["name"]) == (version, name)

    return row


async def ping(talk: Talk) -> None:
    """It answers a ping, or what stands for it."""
    await talk.client.ping()


def lists(**wanted: set[str]) -> Row:
    """What is `wanted` of tools, resources, templates and prompts is listed, by name."""

    async def row(talk: Talk) -> None:
        client = talk.client
        listing = {
            "tools": client.list_tools,
            "resources": client.list_resources,
            "templates": client.list_resource_templates,
            "prompts": client.list_prompts,
        }
        for kind, names in wanted.items():
            listed = {one.name for one in await listing[kind]()}
            assert names <= listed, f"{names - listed} are not among the {kind}"

    return row


def calls(tool: str, arguments: Mapping[str, Any], part: str) -> Row:
    """The text of the result has that part in it."""

    async def row(talk: Talk) -> None:
        result = await talk.call(tool, arguments)
        assert not result.is_error, result
        assert part in result.text, result.text

    return row


def data(tool: str, arguments: Mapping[str, Any], wanted: Mapping[str, Any]) -> Row:
    """The result has that as data."""

    async def row(talk: Talk) -> None:
        result = await talk.call(tool, arguments)
        assert result.structured_content == wanted

    return row


def fails(tool: str, arguments: Mapping[str, Any], part: str) -> Row:
    """The result is an error, whose text has that part in it."""

    async def row(talk: Talk) -> None:
        result = await talk.call(tool, arguments)
        assert result.is_error, result
        assert part in result.text, result.text

    return row


async def unknown(talk: Talk) -> None:
    """A tool that there is not is an error of one kind or the other."""
    with suppress(PeerError):
        result = await talk.call("there_is_none")
        assert result.is_error, result


def reads(uri: str, part: str) -> Row:
    """The text of a resource has that part in it."""

    async def row(talk: Talk) -> None:
        [contents] = (await talk.client.read_resource(uri)).contents
        assert isinstance(contents, TextResourceContents)
        assert part in contents.text

    return row


def reads_bytes(uri: str, blob: str) -> Row:
    """A resource is those bytes."""

    async def row(talk: Talk) -> None:
        [contents] = (await talk.client.read_resource(uri)).contents
        assert isinstance(contents, BlobResourceContents)
        assert contents.blob == blob

    return row


def skills(uri: str, files: Mapping[str, bytes]) -> Row:
    """A skill is listed, and loaded with those files beside its SKILL.md, each of which is what was listed."""

    async def row(talk: Talk) -> None:
        served = ServerSkills(talk.client, "sample")
        entry = {one.uri: one for one in await served.list_skills()}[uri]
        assert entry == await served.get_skill(uri)
        skill = await served.load(entry)
        assert {path: await skill.read(path) for path in skill.files if path != "SKILL.md"} == files

    return row


def prompts(name: str, arguments: Mapping[str, str], part: str) -> Row:
    """The first message of a prompt has that part in it."""

    async def row(talk: Talk) -> None:
        result = await talk.client.get_prompt(name, talk.filled(arguments))
        content = result.messages[0].content
        assert isinstance(content, TextContent)
        assert part in content.text

    return row


def completes(prompt: str, name: str, value: str, wanted: list[str]) -> Row:
    """Those are the values of an argument of a prompt that begin so."""

    async def row(talk: Talk) -> None:
        found = await talk.client.complete(PromptReference(name=prompt), name, value)
        assert found.values == wanted

    return row


def reports(tool: str, arguments: Mapping[str, Any], steps: int) -> Row:
    """Each of so many steps is reported, in order."""

    async def row(talk: Talk) -> None:
        seen: list[tuple[float, float | None]] = []
        await talk.call(tool, arguments, on_progress=lambda *said: seen.append(said[:2]))
        assert seen == [(step, steps) for step in range(1, steps + 1)]

    return row


def logs(tool: str, data: Any) -> Row:
    """The tool says that in the log."""

    async def row(talk: Talk) -> None:
        await talk.call(tool)
        while not talk.ears.logs:  # over HTTP it may come by another stream than the answer
            await anyio.sleep(0.01)
        assert talk.ears.logs == [("warning", data)]

    return row


async def cancels(talk: Talk) -> None:
    """A call that is cancelled is cancelled at the server."""
    began = anyio.Event()

    async def hold() -> None:
        await talk.call("hold", on_progress=lambda *_: began.set())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        await began.wait()
        tasks.cancel_scope.cancel()
    assert (await talk.call("when_stopped")).text == "stopped"


def changes(uri: str, tool: str) -> Row:
    """The tool changes a resource, which is heard of."""

    async def row(talk: Talk) -> None:
        async with talk.client.changes([uri], lists=False) as heard:
            await talk.call(tool)
            assert await anext(heard) == Change("resource", uri)

    return row


def relists(tool: str, arguments: Mapping[str, Any] | None = None) -> Row:
    """The tool changes the list of tools, which is heard of."""

    async def row(talk: Talk) -> None:
        async with talk.client.changes() as heard:
            await talk.call(tool, arguments)
            assert await anext(heard) == Change("tools")

    return row


async def outcome(row: Row, talk: Talk, seconds: float) -> str:
    """What becomes of a row: "ok", or what went wrong."""
    try:
        with anyio.fail_after(seconds):
            await row(talk)
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError, OSError, McpError) as error:
        return f"{type(error).__name__}: {error}"
    return "ok"

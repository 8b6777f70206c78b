"""`Client` against the real server loop, in both eras."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest

from shared import Context
from shared.client.approval import Act, Denied
from shared.client.client import Client
from shared.errors import McpError, PeerError, RpcError
from shared.protocol.session.events import Outgoing
from shared.protocol.types.client import CreateMessageResult, ElicitResult, Root
from shared.protocol.types.content import TextContent
from shared.protocol.types.elicitation import ElicitForm, ElicitUrl
from shared.protocol.types.prompts import PromptReference
from shared.protocol.types.resources import CONDITIONAL_READS
from shared.protocol.types.sampling import CreateMessageParams
from shared.protocol.versions import VERSIONS
from shared.protocol.wire.codec import Codec
from shared.protocol.wire.jsonrpc import Message, Request
from tests.schemas import VERSIONS as SCHEMA_VERSIONS
from tests.schemas import check, requires_spec
from tests.shared.client.small import End, Small, text_of

EVERY_MODE = pytest.mark.parametrize("mode", ["handshake", "stateless", "2024-11-05"])
ERAS = pytest.mark.parametrize("mode", ["handshake", "stateless"])


@EVERY_MODE
async def test_features_are_listed_and_used(mode: str) -> None:
    async with Small().connected(mode=mode) as client:
        assert "add" in [tool["name"] for tool in await client.raw.list_tools()]
        assert [one["uri"] for one in await client.raw.list_resources()] == ["memo://one"]
        assert await client.raw.list_resource_templates() == []
        assert [one["name"] for one in await client.raw.list_prompts()] == ["plan"]
        assert text_of(await client.raw.call_tool("add", {"a": 2, "b": 3})) == "5"
        assert (await client.raw.read_resource("memo://one"))["contents"][0]["text"] == "the text"
        assert (await client.raw.get_prompt("plan", {"goal": "it"}))["messages"][0]["content"]["text"] == "Plan it."


@ERAS
async def test_an_error_of_the_server_is_raised_with_its_data(mode: str) -> None:
    async with Small().connected(mode=mode) as client:
        with pytest.raises(PeerError, match="not found") as caught:
            await client.raw.read_resource("memo://two")
        assert caught.value.data == {"uri": "memo://two"}


async def test_an_error_in_the_block_is_not_wrapped_in_an_exception_group() -> None:
    with pytest.raises(PeerError, match="method not found"):
        async with Small().connected() as client:
            await client.request("no/such")


@EVERY_MODE
async def test_progress_is_reported(mode: str) -> None:
    seen: list[Any] = []
    async with Small().connected(mode=mode) as client:
        await client.raw.call_tool("count", {"to": 3}, on_progress=lambda *report: seen.append(report))
    message = None if mode == "2024-11-05" else "at 3"
    assert [number for number, _, _ in seen] == [1, 2, 3]
    assert seen[-1] == (3, 3, message)


# Timeouts and cancellation


@ERAS
async def test_a_call_that_times_out_is_cancelled(mode: str) -> None:
    small = Small()
    async with small.connected(mode=mode) as client:
        while not small.started.is_set():
            with pytest.raises(TimeoutError):
                await client.raw.call_tool("wait", timeout=0.01)
        await small.cancelled.wait()
        assert text_of(await client.raw.call_tool("add", {"a": 1, "b": 1})) == "2"


@ERAS
async def test_a_cancelled_caller_cancels_the_call(mode: str) -> None:
    small = Small()
    async with small.connected(mode=mode) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.raw.call_tool, "wait")
            await small.started.wait()
            tasks.cancel_scope.cancel()
        await small.cancelled.wait()


async def test_calls_in_progress_end_with_the_connection() -> None:
    small = Small()
    async with small.connected() as client:

        async def call() -> None:
            with pytest.raises(ConnectionError):
                await client.raw.call_tool("wait")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await small.started.wait()
            await small.lines[0].aclose()
        with pytest.raises(ConnectionError):
            await client.raw.list_tools()


# Server requests

ROOTS = [Root(uri="file:///a"), Root(uri="file:///b")]


async def _name(form: ElicitForm) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada" if "first" in form.message else "Lovelace"})


async def _think(_conversation: CreateMessageParams) -> CreateMessageResult:
    return CreateMessageResult.of("m", TextContent(text="hm"))


async def _refuse() -> list[Root]:
    raise RpcError("the user said no", code=-1)


async def _break() -> list[Root]:
    raise ZeroDivisionError


@ERAS
async def test_server_requests_are_answered_by_the_handlers(mode: str) -> None:
    async with Small().connected(mode=mode, elicit=_name, roots=ROOTS, sample=_think) as client:
        assert text_of(await client.raw.call_tool("greet")) == "Ada Lovelace"
        assert text_of(await client.raw.call_tool("roots")) == "file:///a file:///b"
        assert text_of(await client.raw.call_tool("think")) == "hm"


@pytest.mark.parametrize("mode", [version.date for version in VERSIONS])
async def test_each_side_gets_the_extensions_of_the_other(mode: str) -> None:
    async def known(ctx: Context[None]) -> str:
        """Tell what the client declared."""
        return json.dumps(ctx.peer.capabilities["extensions"])

    small, extensions = Small(), {"org.example/view": {"kinds": ["text/html"]}}
    small.app.tool()(known)
    async with small.connected(mode=mode, tasks=False, capabilities={"extensions": extensions}) as client:
        assert client.server.can("extensions", "org.example/view")
        assert json.loads(text_of(await client.raw.call_tool("known"))) == {CONDITIONAL_READS: {}, **extensions}


@ERAS
async def test_a_server_does_not_use_undeclared_capabilities(mode: str) -> None:
    async with Small().connected(mode=mode) as client:
        with pytest.raises(PeerError, match="capability"):
            await client.raw.call_tool("greet")


@ERAS
async def test_a_server_request_without_a_handler_is_refused(mode: str) -> None:
    async with Small().connected(mode=mode, capabilities={"roots": {}}) as client:
        with pytest.raises(McpError, match="roots/list"):
            await client.raw.call_tool("roots")


async def test_a_handler_can_refuse() -> None:
    async with Small().connected(mode="handshake", roots=_refuse) as client:
        with pytest.raises(PeerError, match="refused"):
            await client.raw.call_tool("roots")
    async with Small().connected(mode="stateless", roots=_refuse) as client:
        with pytest.raises(RpcError, match="the user said no"):
            await client.raw.call_tool("roots")


@ERAS
async def test_an_exception_of_a_handler_ends_the_client(mode: str) -> None:
    with pytest.raises(ZeroDivisionError):
        async with Small().connected(mode=mode, roots=_break) as client:
            await client.raw.call_tool("roots")


# Permits


async def _permit(act: Act) -> None:
    if act.name in ("fail", "memo://one", "plan", "roots/list"):
        raise Denied(f"{act.server}: no {act.kind} of {act.name} {act.arguments}")


@ERAS
async def test_denied_acts_are_not_sent(mode: str) -> None:
    async with Small().connected(mode=mode, permit=_permit) as client:
        assert text_of(await client.raw.call_tool("add", {"a": 1, "b": 1})) == "2"
        with pytest.raises(Denied, match=r"small: no call of fail {'why': 1}"):
            await client.call_tool("fail", {"why": 1})
        with pytest.raises(Denied, match="small: no read of memo://one"):
            await client.read_resource("memo://one")
        with pytest.raises(Denied, match=r"small: no prompt of plan {'goal': 'it'}"):
            await client.raw.get_prompt("plan", {"goal": "it"})


async def test_a_denied_server_request_is_refused() -> None:
    async with Small().connected(mode="handshake", roots=_break, permit=_permit) as client:
        with pytest.raises(PeerError, match="refused"):
            await client.raw.call_tool("roots")
    async with Small().connected(mode="stateless", roots=_break, permit=_permit) as client:
        with pytest.raises(Denied, match="small: no roots of roots/list"):
            await client.raw.call_tool("roots")


# Messages and the official schemas

WITHOUT_FORMS = SCHEMA_VERSIONS[:2]
"""These versions have no completion context, either."""


class Recorded(Small):
    """The small server, and the messages of its client."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[dict[str, Any]] = []
        self.asked: dict[Any, str] = {}
        """The methods of the server's requests, by their ids."""

    @asynccontextmanager
    async def line(self) -> AsyncIterator[End]:
        """Records the messages of a line."""
        async with super().line() as end:
            codec, send, receive = Codec(is_client=True), end.send, end.receive

            async def send_and_record(messages: Sequence[Outgoing]) -> None:
                self.sent += [json.loads(codec.encode(one.message)) for one in messages]
                await send(messages)

            async def receive_and_record() -> Sequence[Message]:
                messages = await receive()
                self.asked |= {one.id: one.method for one in messages if isinstance(one, Request)}
                return messages

            end.send, end.receive = send_and_record, receive_and_record  # type: ignore[method-assign]
            yield end


async def fill_in(_form: ElicitForm) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


async def visit(_visit: ElicitUrl) -> ElicitResult:
    return ElicitResult(action="decline")


async def think(_conversation: CreateMessageParams) -> CreateMessageResult:
    return CreateMessageResult.of("model", TextContent(text="so"))


async def use_everything(client: Client, version: str) -> None:
    """Makes every call, and answers every server request."""
    for call in (client.list_tools, client.list_resources, client.list_resource_templates, client.list_prompts):
        await call()
    await client.call_tool("add", {"a": 1, "b": 2})
    await client.call_tool("count", {"to": 2}, on_progress=lambda *_how_far: None)
    for tool in ("roots", "think", *(() if version in WITHOUT_FORMS else ("greet",))):
        assert not (await client.call_tool(tool)).is_error
    await client.read_resource("memo://one")
    await client.get_prompt("plan", {"goal": "x"})
    with suppress(PeerError):  # the small server has no completions
        context = None if version in WITHOUT_FORMS else {"other": "y"}
        await client.complete(PromptReference(name="plan"), "goal", "x", context)
    await client.ping()
    await client.set_log_level("info")
    with suppress(TimeoutError):
        await client.call_tool("wait", timeout=0.01)
    async with client.changes(["memo://one"]):
        client.roots_changed()


@requires_spec
@pytest.mark.parametrize("version", SCHEMA_VERSIONS)
async def test_every_message_matches_the_schema_of_its_version(version: str) -> None:
    small = Recorded()
    handlers = {"elicit": fill_in, "elicit_url": visit, "sample": think, "roots": [Root(uri="file:///home")]}
    async with small.connected(mode=version, sample_tools=True, **handlers) as client:
        await use_everything(client, version)
    assert len(small.sent) > 15
    for message in small.sent:
        check(message, version, method=small.asked, sender="Client")

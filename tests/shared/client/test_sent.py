"""What the client sends is what the official schema of its protocol version allows, and nothing besides."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from shared.client.client import Client
from shared.errors import PeerError
from shared.protocol.session.events import Outgoing
from shared.protocol.types.client import CreateMessageResult, ElicitResult, Root
from shared.protocol.types.content import TextContent
from shared.protocol.types.elicitation import ElicitForm, ElicitUrl
from shared.protocol.types.prompts import PromptReference
from shared.protocol.types.sampling import CreateMessageParams
from shared.protocol.wire.codec import Codec
from shared.protocol.wire.jsonrpc import Message, Request
from tests.schemas import VERSIONS, check, requires_spec
from tests.shared.client.small import End, Small

WITHOUT_FORMS = VERSIONS[:2]
"""They have no context of a completion either."""


class Recorded(Small):
    """The small server, and what its client has sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[dict[str, Any]] = []
        self.asked: dict[Any, str] = {}
        """The methods of the server's questions, by their ids."""

    @asynccontextmanager
    async def line(self) -> AsyncIterator[End]:
        """As of the small one, and overheard."""
        async with super().line() as end:
            codec, send, receive = Codec(is_client=True), end.send, end.receive

            async def overheard(messages: Sequence[Outgoing]) -> None:
                self.sent += [json.loads(codec.encode(one.message)) for one in messages]
                await send(messages)

            async def heard() -> Sequence[Message]:
                messages = await receive()
                self.asked |= {one.id: one.method for one in messages if isinstance(one, Request)}
                return messages

            end.send, end.receive = overheard, heard  # type: ignore[method-assign]
            yield end


async def fill_in(_form: ElicitForm) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


async def visit(_visit: ElicitUrl) -> ElicitResult:
    return ElicitResult(action="decline")


async def think(_conversation: CreateMessageParams) -> CreateMessageResult:
    return CreateMessageResult.of("model", TextContent(text="so"))


async def use_everything(client: Client, version: str) -> None:
    """Every call that there is, and every question."""
    for call in (client.list_tools, client.list_resources, client.list_resource_templates, client.list_prompts):
        await call()
    await client.call_tool("add", {"a": 1, "b": 2})
    await client.call_tool("count", {"to": 2}, on_progress=lambda *_how_far: None)
    for tool in ("roots", "think", *(() if version in WITHOUT_FORMS else ("greet",))):
        assert not (await client.call_tool(tool)).is_error
    await client.read_resource("memo://one")
    await client.get_prompt("plan", {"goal": "x"})
    with suppress(PeerError):  # the small server completes nothing
        context = None if version in WITHOUT_FORMS else {"other": "y"}
        await client.complete(PromptReference(name="plan"), "goal", "x", context)
    await client.ping()
    await client.set_log_level("info")
    with suppress(TimeoutError):
        await client.call_tool("wait", timeout=0.01)
    async with client.changes(["memo://one"]):
        client.roots_changed()


@requires_spec
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_message_is_in_the_schema(version: str) -> None:
    small = Recorded()
    handlers = {"elicit": fill_in, "elicit_url": visit, "sample": think, "roots": [Root(uri="file:///home")]}
    async with small.connected(mode=version, sample_tools=True, **handlers) as client:
        await use_everything(client, version)
    assert len(small.sent) > 15
    for message in small.sent:
        check(message, version, method=small.asked, sender="Client")

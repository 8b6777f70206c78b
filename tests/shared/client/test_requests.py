"""Requests to servers that want more than a call first, or say odd things beside their answers: these take neither
call nor client along."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
import pytest
from pydantic import Field

from shared.client.client import Client
from shared.client.connect import connect_http
from shared.client.options import ClientOptions
from shared.errors import PeerError, RpcError
from shared.kit.tasks import background
from shared.protocol.session.events import Outgoing
from shared.protocol.types.client import ElicitResult
from shared.protocol.types.elicitation import ElicitForm
from shared.protocol.wire.jsonrpc import Message, Notification, Request, Response
from shared.transports.memory import MemoryTransport, memory_pair
from tests.shared.client.small import End, Small, listening, text_of

# A tool whose arguments headers repeat is called although nobody has listed it

MISMATCH = -32020


class Marked(Small):
    """A server with a tool of which headers repeat an argument, and one that is never satisfied."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        for function in (self.forecast, self.insist):
            self.app.tool()(function)

    async def forecast(self, city: Annotated[str, Field(json_schema_extra={"x-mcp-header": "City"})]) -> str:
        """Foretell."""
        return f"rain in {city}"

    async def insist(self) -> str:
        """Want another header."""
        self.calls += 1
        raise RpcError("a header is missing", code=MISMATCH)


async def test_a_tool_that_was_not_listed_is_called_once_more_and_no_oftener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    small = Marked()
    async with (
        listening(small) as (address, _),
        connect_http(f"http://{address}/mcp", ClientOptions(mode="stateless")) as client,
    ):
        assert (await client.call_tool("forecast", {"city": "Zürich"})).text == "rain in Zürich"
        with pytest.raises(PeerError) as refusal:
            await client.call_tool("insist")
        assert (refusal.value.code, small.calls) == (MISMATCH, 2)


# Values of a shape that nobody expects

DESCRIBED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd"}}
DONE = {"content": [{"type": "text", "text": "done"}]}


@asynccontextmanager
async def connected(*said: Message, **options: Any) -> AsyncIterator[Client]:
    """A client of a server that has `said` something before it answers a call."""
    ours, theirs = memory_pair()
    with anyio.fail_after(30):
        async with background() as tasks:
            tasks.start_soon(_serve, theirs, said)
            try:
                async with Client(End(ours), ClientOptions(mode="handshake", **options)) as client:
                    yield client
            finally:
                theirs.close()


async def _serve(theirs: MemoryTransport, said: Sequence[Message]) -> None:
    try:
        while True:
            for message in await theirs.receive():
                if isinstance(message, Request):
                    result = DESCRIBED if message.method == "initialize" else DONE
                    before = said if message.method == "tools/call" else ()
                    await theirs.send([Outgoing(one) for one in (*before, Response(message.id, result))])
    except anyio.EndOfStream:
        theirs.close()


async def _elicit(form: ElicitForm) -> ElicitResult:
    return ElicitResult(action="accept", content={})


@pytest.mark.parametrize(
    "question",
    [
        *({"mode": mode, "message": "?"} for mode in ({}, [], 1)),
        {"message": "?", "requestedSchema": {"type": "object", "properties": {}, "patternProperties": 5}},
    ],
)
async def test_a_question_that_is_none(question: dict[str, Any]) -> None:
    async with connected(Request("q", "elicitation/create", question), elicit=_elicit) as client:
        for _ in range(3):
            assert text_of(await client.plain.call_tool("work")) == "done"


@pytest.mark.parametrize(
    ("progress", "told"),
    [
        ({"progress": 10**4000}, []),
        ({"progress": True}, []),
        ({"progress": "1"}, []),
        ({"progress": 1, "total": 10**4000, "message": {}}, [(1, None, None)]),
        ({"progress": 0.5, "total": 1, "message": "half"}, [(0.5, 1, "half")]),
    ],
)
async def test_progress_that_is_none(progress: dict[str, Any], told: list[Any]) -> None:
    seen: list[Any] = []
    notice = Notification("notifications/progress", {"progressToken": 2, **progress})
    async with connected(notice) as client:
        result = await client.plain.call_tool("work", on_progress=lambda *report: seen.append(report))
    assert (text_of(result), seen) == ("done", told)

"""Calls of servers that require headers, or send invalid messages: neither the call nor the client fails."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from pydantic import Field

from shared.client.client import Client
from shared.client.connect import connect_http
from shared.client.options import ClientOptions
from shared.errors import PeerError, RpcError
from shared.protocol.types.client import ElicitResult
from shared.protocol.types.elicitation import ElicitForm
from shared.protocol.wire.jsonrpc import Message, Notification, Request
from tests.shared.client.connection.test_link import good, playing
from tests.shared.client.small import Small, listening, text_of

# Arguments in headers, for a tool that was not listed

MISMATCH = -32020


class Marked(Small):
    """A server with a tool that requires an argument in a header, and a tool that always raises a header mismatch."""

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


async def test_a_header_mismatch_lists_the_tools_and_repeats_the_call_once() -> None:
    small = Marked()
    async with (
        listening(small) as (address, _),
        connect_http(f"http://{address}/mcp", ClientOptions(mode="stateless")) as client,
    ):
        assert (await client.call_tool("forecast", {"city": "Zürich"})).text == "rain in Zürich"
        with pytest.raises(PeerError) as refusal:
            await client.call_tool("insist")
        assert (refusal.value.code, small.calls) == (MISMATCH, 2)


# Invalid messages


@asynccontextmanager
async def saying(message: Message, **options: Any) -> AsyncIterator[Client]:
    """A client of a server that sends `message` before it answers a call."""

    def play(request: Request) -> Message:
        opened[0].tell(message)
        return good(request)

    async with playing(play, **options) as (client, opened):
        yield client


async def _elicit(form: ElicitForm) -> ElicitResult:
    return ElicitResult(action="accept", content={})


@pytest.mark.parametrize(
    "question",
    [
        *({"mode": mode, "message": "?"} for mode in ({}, [], 1)),
        {"message": "?", "requestedSchema": {"type": "object", "properties": {}, "patternProperties": 5}},
    ],
)
async def test_an_invalid_elicitation_does_not_disturb_a_call(question: dict[str, Any]) -> None:
    async with saying(Request("q", "elicitation/create", question), elicit=_elicit) as client:
        for _ in range(3):
            assert text_of(await client.raw.call_tool("work")) == "good"


@pytest.mark.parametrize(
    ("progress", "reports"),
    [
        ({"progress": 10**4000}, []),
        ({"progress": True}, []),
        ({"progress": "1"}, []),
        ({"progress": 1, "total": 10**4000, "message": {}}, [(1, None, None)]),
        ({"progress": 0.5, "total": 1, "message": "half"}, [(0.5, 1, "half")]),
    ],
)
async def test_invalid_progress_does_not_disturb_a_call(progress: dict[str, Any], reports: list[Any]) -> None:
    seen: list[Any] = []
    notice = Notification("notifications/progress", {"progressToken": 2, **progress})
    async with saying(notice) as client:
        result = await client.raw.call_tool("work", on_progress=lambda *report: seen.append(report))
    assert (text_of(result), seen) == ("good", reports)

"""Values of a shape that nobody expects: what is said beside an answer takes neither call nor client along."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared.client.client import Client
from shared.client.options import ClientOptions
from shared.kit.tasks import background
from shared.protocol.session.events import Outgoing
from shared.protocol.types.client import ElicitResult
from shared.protocol.types.elicitation import ElicitForm
from shared.protocol.wire.codec import decode, encode
from shared.protocol.wire.jsonrpc import Message, Notification, Request, Response
from shared.transports.memory import MemoryTransport, memory_pair
from tests.shared.client.small import End, text_of

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
                    # As it comes over a wire.
                    sent = [decode(encode(one)) for one in (*before, Response(message.id, result))]
                    await theirs.send([Outgoing(one) for one in sent])
    except anyio.EndOfStream:
        theirs.close()


async def _elicit(form: ElicitForm) -> ElicitResult:
    return ElicitResult(action="accept", content={})


@pytest.mark.parametrize("mode", [{}, [], 1])
async def test_a_question_of_a_mode_that_is_none(mode: Any) -> None:
    question = Request("q", "elicitation/create", {"mode": mode, "message": "?"})
    async with connected(question, elicit=_elicit) as client:
        assert text_of(await client.plain.call_tool("work")) == "done"


async def test_a_form_whose_schema_is_none() -> None:
    schema = {"type": "object", "properties": {}, "patternProperties": 5}
    question = Request("q", "elicitation/create", {"message": "?", "requestedSchema": schema})
    async with connected(question, elicit=_elicit) as client:
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

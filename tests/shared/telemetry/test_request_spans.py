"""Spans of requests that fail. `tests/shared/program/test_observation.py` has those of whole programs."""

from collections.abc import Iterator
from dataclasses import replace

import anyio
import pytest

from shared.telemetry.request_spans import trace_calls
from shared.tracing.spans import set_tracer
from tests.clock import forward
from tests.quiet import quiet
from tests.shared.server.peer import server, talking
from tests.shared.tracing.test_spans import Collector


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    set_tracer(collector)
    yield collector
    set_tracer(None)


async def test_spans_of_failed_requests_have_the_kind_of_the_error(collector: Collector) -> None:
    app = server()
    app.budget = replace(app.budget, seconds=5)

    @app.tool()
    async def wait() -> None:
        """Wait for ever."""
        await anyio.sleep_forever()

    call = {"name": "wait", "arguments": {}}
    async with app.open(extensions=[trace_calls("test", over_http=False)]) as running, talking(running) as peer:
        await peer.request("tools/call", {"name": "paint", "arguments": {}})
        await peer.cancel(await peer.begin("tools/call", call))
        await quiet()
        late = await peer.begin("tools/call", call)
        await quiet()
        forward(6)
        await peer.answer(late)
    names = ("-32602", "cancelled", "timeout")
    failures = [entry for entry in collector.seen if isinstance(entry, tuple) and entry[0] in names]
    assert failures == [("-32602", "unknown tool: paint"), ("cancelled", ""), ("timeout", "")]

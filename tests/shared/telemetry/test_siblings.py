"""The connection of a worker to its parent, whose end the test plays."""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from shared.telemetry import siblings as module
from shared.telemetry.siblings import Siblings, Totals, encode_message
from tests.shared.telemetry.test_merged import figures


@asynccontextmanager
async def attended() -> AsyncIterator[tuple[Siblings, SocketStream, anyio.Event]]:
    """A worker, the parent's end of its connection, and the event that is set when the worker must stop."""
    ours, theirs = socket.socketpair()
    worker, stop = Siblings(2, theirs), anyio.Event()
    worker.figures = lambda: [figures()]
    async with await SocketStream.from_socket(ours) as parent, anyio.create_task_group() as tasks:
        tasks.start_soon(worker.serve_parent, stop.set)
        with anyio.fail_after(20):
            yield worker, parent, stop
        tasks.cancel_scope.cancel()
    theirs.close()


async def next_message(parent: SocketStream) -> Any:
    data = b""
    while not data.endswith(b"\n"):
        data += await parent.receive()
    return json.loads(data.split(b"\n")[-2])


async def test_a_worker_reports_that_it_is_ready_and_its_drain_time() -> None:
    async with attended() as (worker, parent, _):
        worker.drain_seconds = 1.5
        worker.report_ready("listening")
        assert await next_message(parent) == {"ready": "listening", "drain": 1.5}


async def test_a_worker_sends_its_counts_on_request_and_at_its_end() -> None:
    async with attended() as (worker, parent, _):
        for byte in encode_message(tell=True):
            await parent.send(bytes([byte]))
        assert (await next_message(parent))["figures"][0]["sessions"] == 1
        worker.send_last_counts()
        assert (await next_message(parent))["figures"][0]["sessions"] == 1


async def test_concurrent_requests_for_totals_get_answers() -> None:
    async with attended() as (worker, parent, _):
        wholes: dict[int, Totals] = {}

        async def ask(number: int) -> None:
            wholes[number] = await worker.request_totals()

        async with anyio.create_task_group() as tasks:
            for number in range(2):
                tasks.start_soon(ask, number)
                assert await next_message(parent) == {"ask": number}
            # No caller waits for this answer.
            await parent.send(encode_message(all=9, figures=[], processes={}, restarts=0))
            for number in (1, 0):
                await parent.send(encode_message(all=number, figures=[], processes={"1": 7}, restarts=number))
        assert wholes == {number: Totals([], {"1": 7}, number) for number in range(2)}


async def test_a_request_for_totals_to_a_silent_parent_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.01)
    async with attended() as (worker, _, _):
        with pytest.raises(TimeoutError):
            await worker.request_totals()


async def test_a_worker_stops_when_its_parent_is_gone() -> None:
    async with attended() as (worker, parent, stop):
        await parent.aclose()
        await stop.wait()
        with pytest.raises(TimeoutError):
            await worker.request_totals()
        worker.send_last_counts()

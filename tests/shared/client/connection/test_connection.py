"""`Connection`: timeouts, batches, and the end of a connection."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import pytest

from shared.client.connection.connection import BATCH_SIZE, Connection
from shared.concurrency import background
from shared.protocol.session.client import ClientSession
from shared.protocol.session.descriptions import ClientIdentity
from shared.protocol.session.events import Outgoing
from shared.protocol.versions import NEWEST_HANDSHAKE
from shared.protocol.wire.jsonrpc import Notification, Request, Response
from shared.transports.memory import MemoryTransport, memory_pair
from tests.shared.client.small import End


def _connection(**answers: Any) -> tuple[Connection, MemoryTransport]:
    ours, theirs = memory_pair()
    session = ClientSession(ClientIdentity({}, {}), NEWEST_HANDSHAKE)
    handlers = {f"{name}/list": answer for name, answer in answers.items()}
    return Connection(End(ours), session, handlers, lambda notice, taken: None), theirs


async def _next(end: MemoryTransport) -> object:
    with anyio.fail_after(30):
        return (await end.receive())[0]


async def _several(end: MemoryTransport, count: int) -> list[object]:
    return [await _next(end) for _ in range(count)]


async def test_the_time_of_a_handler_does_not_count_for_the_timeout() -> None:
    connection, theirs = _connection()
    async with connection.run():
        with connection.send(connection.session.request("tools/list", {})) as waiter:
            connection.session.receive(Request("q", "roots/list"))
            with anyio.move_on_after(0.02) as patience:
                await connection.answer(waiter, 0.001)
            assert patience.cancelled_caught
            connection.session.respond("q", {})
            with pytest.raises(TimeoutError):
                await connection.answer(waiter, 0.001)
    theirs.close()


async def test_queued_messages_are_sent_before_the_connection_closes() -> None:
    connection, theirs = _connection()
    async with connection.run():
        connection.notify("notifications/a", {})
    assert await _next(theirs) == Notification("notifications/a")
    with pytest.raises(anyio.EndOfStream):
        await _next(theirs)
    theirs.close()


class Prompt(End):
    """An end that accepts messages without waiting, and records the size of each batch."""

    def __init__(self, end: MemoryTransport) -> None:
        super().__init__(end)
        self.pieces: list[int] = []

    def try_send(self, outgoing: Sequence[Outgoing]) -> bool:
        self.pieces.append(len(outgoing))
        return True


async def test_concurrent_requests_are_sent_in_batches() -> None:
    ours, theirs = memory_pair()
    transport = Prompt(ours)
    session = ClientSession(ClientIdentity({}, {}), NEWEST_HANDSHAKE)
    connection = Connection(transport, session, {}, lambda notice, taken: None)
    async with connection.run(), background() as tasks:
        for _ in range(20):
            tasks.start_soon(partial(connection.call, "tools/list", {}, timeout_seconds=None))
        assert len(await _several(theirs, 3)) == 3  # the batches that were left to the writer
        assert transport.pieces == [1, BATCH_SIZE, BATCH_SIZE]
    theirs.close()


async def test_sending_to_a_server_that_has_gone_raises_connection_error() -> None:
    connection, theirs = _connection()
    async with connection.run():
        theirs.close()
        with anyio.fail_after(30):
            await connection.gone.wait()
        with pytest.raises(ConnectionError), connection.send(1):
            pass


async def test_a_cancelled_server_request_stops_its_handler() -> None:
    asked, stopped = anyio.Event(), anyio.Event()

    async def think(params: dict[str, object]) -> dict[str, object]:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()
        return {}

    connection, theirs = _connection(roots=think)
    async with connection.run():
        await theirs.send_bytes(b'{"jsonrpc": "2.0", "id": 7, "method": "roots/list"}')
        with anyio.fail_after(30):
            await asked.wait()
            await theirs.send_bytes(
                b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}'
            )
            await stopped.wait()
    with pytest.raises(anyio.EndOfStream):
        await _next(theirs)
    theirs.close()


async def test_an_answer_just_before_the_end_is_delivered() -> None:
    connection, theirs = _connection()
    async with connection.run():
        with connection.send(connection.session.request("ping", {})) as waiter:
            await theirs.send([Outgoing(Response(1, {}))])
            theirs.close_sending()
            await connection.gone.wait()
            assert await connection.answer(waiter, 1) == Response(1, {})
    theirs.close()


async def test_a_late_answer_of_a_cancelled_handler_answers_no_other_request() -> None:
    asked = [anyio.Event(), anyio.Event()]
    may_answer = [anyio.Event(), anyio.Event()]

    async def answer(params: dict[str, Any]) -> dict[str, Any]:
        number = params["number"]
        asked[number].set()
        with anyio.CancelScope(shield=True):
            await may_answer[number].wait()
        return {"number": number}

    connection, theirs = _connection(roots=answer)
    async with connection.run():
        await theirs.send([Outgoing(Request("q", "roots/list", {"number": 0}))])
        await asked[0].wait()
        await theirs.send([Outgoing(Notification("notifications/cancelled", {"requestId": "q"}))])
        await theirs.send([Outgoing(Request("q", "roots/list", {"number": 1}))])
        await asked[1].wait()
        may_answer[0].set()
        await anyio.wait_all_tasks_blocked()
        may_answer[1].set()
        assert await _next(theirs) == Response("q", {"number": 1})
    theirs.close()

"""`Link`: reconnection, and retries of requests whose connection was lost."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from shared.client.client import Client
from shared.client.connection.changes import Change
from shared.client.errors import SessionLost, Unreached
from shared.client.options import ClientOptions
from shared.contracts import ClosableTransport
from shared.errors import PeerError
from shared.protocol.session.events import Outgoing
from shared.protocol.types.base import LOG_LEVEL
from shared.protocol.types.client import Root
from shared.protocol.wire.jsonrpc import Failure, Gap, Message, Notification, Request, Response, Unanswered
from tests.quiet import quiet
from tests.shared.client.small import Small, text_of

ERAS = pytest.mark.parametrize("mode", ["handshake", "stateless"])
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "played"}}
Play = Callable[[Request], Message | None]
pytestmark = pytest.mark.usefixtures("short_pauses")


def discovered(request: Request) -> Message:
    return Failure(request.id, -32020, "a header is missing")


class Played:
    """A transport to a server whose answers `play` returns; None sends no answer."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.asked: list[str] = []
        self.notifications: list[str] = []
        self._answers, self._come = anyio.create_memory_object_stream[Message](100)

    async def receive(self) -> list[Message]:
        try:
            return [await self._come.receive()]
        except anyio.ClosedResourceError:
            raise anyio.EndOfStream from None

    async def send(self, outgoing: Any) -> None:
        for one in outgoing:
            self._sent(one)

    def _sent(self, one: Outgoing) -> None:
        if isinstance(one.message, Notification):
            self.notifications.append(one.message.method)
        if not isinstance(one.message, Request):
            return
        self.asked.append(one.message.method)
        opening = one.message.method == "initialize"
        answer = Response(one.message.id, OPENING) if opening else self.play(one.message)
        if answer is not None:
            self._answers.send_nowait(answer)

    def tell(self, message: Message) -> None:
        self._answers.send_nowait(message)

    def end(self) -> None:
        self._answers.close()

    async def aclose(self) -> None:
        self.end()
        self._come.close()


@asynccontextmanager
async def playing(*plays: Play, **options: Any) -> AsyncIterator[tuple[Client, list[Played]]]:
    """A client of a server whose nth connection answers by the nth of `plays`; later ones answer by the last."""
    opened: list[Played] = []

    @asynccontextmanager
    async def start() -> AsyncIterator[ClosableTransport]:
        opened.append(Played(plays[min(len(opened), len(plays) - 1)]))
        yield opened[-1]

    with anyio.fail_after(30):
        given = ClientOptions(**{"mode": "handshake", **options})
        async with start() as transport, Client(transport, given, reopen=start) as client:
            yield client, opened


def good(request: Request) -> Message:
    return Response(request.id, {"content": [{"type": "text", "text": "good"}]})


def unanswered(cause: Any) -> Play:
    return lambda request: Unanswered(request.id, "no answer", cause)


@ERAS
async def test_a_lost_connection_is_reopened_for_the_next_request(mode: str) -> None:
    small = Small()
    async with small.connected(mode=mode, reconnect=True) as client:
        await small.lines[0].aclose()
        assert text_of(await client.raw.call_tool("add", {"a": 2, "b": 3})) == "5"
        assert len(small.lines) == 2
        assert client.connected


async def test_a_connection_is_reopened_after_the_old_one_is_closed() -> None:
    may_close, opened = anyio.Event(), list[Played]()

    class Slow(Played):
        async def aclose(self) -> None:
            await may_close.wait()
            await super().aclose()

    @asynccontextmanager
    async def start() -> AsyncIterator[ClosableTransport]:
        opened.append(Slow(good))
        yield opened[-1]

    with anyio.fail_after(30):
        async with start() as transport, Client(transport, ClientOptions(mode="handshake"), reopen=start) as client:
            opened[0].end()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "any")
                await quiet()
                assert len(opened) == 1
                may_close.set()
            assert len(opened) == 2


async def test_a_call_that_reached_the_server_is_not_repeated() -> None:
    small = Small()
    async with small.connected(reconnect=True) as client:

        async def call() -> None:
            with pytest.raises(ConnectionError, match="the server ended the connection"):
                await client.raw.call_tool("wait")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await small.started.wait()
            await small.lines[0].aclose()
    assert len(small.lines) == 1


async def test_a_forgotten_session_is_reopened() -> None:
    async with playing(unanswered("session over"), good) as (client, opened):
        assert text_of(await client.raw.call_tool("add")) == "good"
        assert [one.asked for one in opened] == [["initialize", "tools/call"]] * 2


async def test_a_forgotten_session_repeats_only_the_calls_without_an_answer() -> None:
    def forgetting(request: Request) -> Message | None:
        return Unanswered(request.id, "unknown session", "session over") if request.params["name"] == "new" else None

    texts: list[str] = []
    async with playing(forgetting, good) as (client, opened):

        async def call(name: str) -> None:
            texts.append(text_of(await client.raw.call_tool(name)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, "old")
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(call, "new")
            await anyio.wait_all_tasks_blocked()
            opened[0].tell(good(Request(2, "tools/call")))
    assert texts == ["good", "good"]
    assert opened[1].asked == ["initialize", "tools/call"]


async def test_a_session_forgotten_each_time_is_an_error() -> None:
    async with playing(unanswered("session over")) as (client, opened):
        with pytest.raises(SessionLost, match="no answer"):
            await client.raw.call_tool("add")
        assert len(opened) == 4


async def test_a_request_that_did_not_reach_the_server_is_repeated() -> None:
    async with playing(unanswered("unreached")) as (client, opened):
        with pytest.raises(Unreached, match="no answer"):
            await client.raw.call_tool("add")
        assert opened[0].asked == ["initialize", *["tools/call"] * 4]


async def test_after_an_unknown_outcome_a_list_is_repeated_and_a_call_is_not() -> None:
    async with playing(unanswered("unknown")) as (client, opened):
        for request in (client.raw.call_tool("add"), client.raw.list_prompts()):
            with pytest.raises(ConnectionError, match="no answer"):
                await request
        assert opened[0].asked == ["initialize", "tools/call", *["prompts/list"] * 4]


async def test_a_call_of_a_read_only_tool_is_repeated() -> None:
    def play(request: Request) -> Message:
        if request.method == "tools/list":
            return Response(request.id, {"tools": [{"name": "look", "annotations": {"readOnlyHint": True}}]})
        return Failure(request.id, 503, "busy")

    async with playing(play) as (client, opened):
        await client.raw.list_tools()
        with pytest.raises(PeerError, match="busy"):
            await client.raw.call_tool("look")
        assert opened[0].asked == ["initialize", "tools/list", *["tools/call"] * 4]


async def test_a_request_is_not_repeated_if_retry_after_exceeds_its_timeout() -> None:
    def play(request: Request) -> Message:
        return Failure(request.id, 503, "busy", {"retryAfter": 3600})

    async with playing(play) as (client, opened):
        with pytest.raises(PeerError, match="busy"):
            await client.raw.list_tools()
        assert opened[0].asked == ["initialize", "tools/list"]


# Changes


@ERAS
async def test_changes_continue_after_a_lost_connection(mode: str) -> None:
    small = Small()
    async with small.connected(mode=mode, reconnect=True) as client, client.changes(["memo://one"]) as changes:
        for number in range(3):
            await small.lines[number].aclose()
            assert await anext(changes) == Change("missed")
            small.running.changes.resource("memo://one")
            assert await anext(changes) == Change("resource", "memo://one")


async def test_a_subscription_stream_that_ends_is_reopened() -> None:
    listens: list[Request] = []

    def play(request: Request) -> Message:
        if request.method != "subscriptions/listen":
            return discovered(request)
        listens.append(request)
        about = {"_meta": {"io.modelcontextprotocol/subscriptionId": request.id}, "notifications": {}}
        return Notification("notifications/subscriptions/acknowledged", about)

    async with playing(play, mode="stateless") as (client, opened), client.changes() as changes:
        opened[0].tell(Response(listens[0].id, {"resultType": "complete"}))
        assert await anext(changes) == Change("missed")
    assert (len(opened), len(listens)) == (1, 2)


async def test_a_gap_reports_missed_to_all_subscriptions() -> None:
    async with playing(good) as (client, opened), client.changes() as one, client.changes() as other:
        opened[0].tell(Gap())
        assert await anext(one) == await anext(other) == Change("missed")


# The end


@ERAS
async def test_ended_waits_for_the_end_of_the_connection(mode: str) -> None:
    small = Small()
    async with small.connected(mode=mode) as client:
        assert client.connected
        await small.lines[0].aclose()
        await client.ended()
        assert not client.connected


async def test_a_reconnecting_client_ends_only_when_closed() -> None:
    small = Small()
    async with anyio.create_task_group() as tasks, small.connected(reconnect=True) as client:
        tasks.start_soon(client.ended)
        await small.lines[0].aclose()
        await anyio.wait_all_tasks_blocked()
        assert client.connected
    assert not client.connected


async def test_an_exception_of_a_handler_ends_a_reconnected_client() -> None:
    async def roots() -> list[Root]:
        raise OSError("no disk")

    async def reconnected() -> None:
        async with playing(good, roots=roots) as (client, opened):
            await opened[0].aclose()
            await client.raw.call_tool("add")
            opened[1].tell(Request("asked", "roots/list", {}))
            await anyio.sleep_forever()

    with pytest.raises(OSError, match="no disk"):
        await reconnected()


async def test_a_waiting_call_fails_when_the_client_is_closed() -> None:
    async def call(client: Client) -> None:
        with pytest.raises(ConnectionError, match="the client is closed"):
            await client.raw.call_tool("wait")

    small = Small()
    async with anyio.create_task_group() as tasks, small.connected() as client:
        tasks.start_soon(call, client)
        await small.started.wait()


async def test_a_request_on_a_connection_that_just_ended_uses_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with playing(unanswered("session over"), good, good) as (client, opened):

        def end(_: Change) -> None:
            if len(opened) == 2:
                opened[1].end()

        # The connection ends after its opening and before its use. Only the cache is notified in between.
        monkeypatch.setattr(client._cached, "on_change", end)
        assert text_of(await client.raw.call_tool("add")) == "good"
        assert [one.asked for one in opened[1:]] == [["initialize"], ["initialize", "tools/call"]]


async def test_a_custom_error_code_does_not_repeat_a_call() -> None:
    async with playing(lambda request: Failure(request.id, -32020, "my own")) as (client, opened):
        with pytest.raises(PeerError, match="my own"):
            await client.raw.call_tool("add")
        assert opened[0].asked == ["initialize", "tools/call"]


async def test_a_header_mismatch_is_raised_if_tools_cannot_be_listed() -> None:
    def play(request: Request) -> Message:
        return Failure(request.id, -32601 if request.method == "tools/list" else -32020, request.method)

    async with playing(play, mode="stateless") as (client, opened):
        with pytest.raises(PeerError, match="tools/call"):
            await client.raw.call_tool("add")
        assert opened[0].asked == ["server/discover", "tools/call", "tools/list", "tools/call"]


async def test_a_call_is_not_repeated_after_its_timeout() -> None:
    def play(request: Request) -> Message | None:
        return None if request.method == "tools/list" else Failure(request.id, -32020, "a header is missing")

    async with playing(play, mode="stateless") as (client, opened):
        with pytest.raises(TimeoutError, match=r"in 0\.05 s"):
            await client.raw.call_tool("add", timeout=0.05)
        assert opened[0].asked == ["server/discover", "tools/call", "tools/list"]


async def test_a_log_level_set_while_reconnecting_applies_to_the_next_connection() -> None:
    levels: list[object] = []
    asked = anyio.Event()

    def play(request: Request) -> Message | None:
        if request.method == "server/discover":
            asked.set()
            return None
        levels.append(request.params["_meta"].get(LOG_LEVEL))
        return good(request)

    def forgetting(request: Request) -> Message:
        is_discover = request.method == "server/discover"
        return discovered(request) if is_discover else Unanswered(request.id, "unknown", "session over")

    async with playing(forgetting, play, mode="stateless") as (client, opened), anyio.create_task_group() as tasks:
        tasks.start_soon(client.raw.call_tool, "add")
        await asked.wait()
        await client.set_log_level("debug")
        opened[1].tell(discovered(Request(1, "server/discover")))
    assert levels == ["debug"]


def mute(request: Request) -> Message | None:
    return None


async def test_a_server_that_does_not_answer_a_ping_is_replaced() -> None:
    async with playing(mute, good, heartbeat_seconds=0.01) as (client, opened), client.changes() as changes:
        assert await anext(changes) == Change("missed")
        assert opened[0].asked == ["initialize", "ping"]


@pytest.mark.slow
async def test_a_server_that_answers_pings_is_kept() -> None:
    pinged = anyio.Event()

    def play(request: Request) -> Message:
        pinged.set()
        return Response(request.id, {})

    async with playing(play, heartbeat_seconds=0.25) as (client, opened), client.changes():
        await pinged.wait()
        await client.raw.call_tool("add")
    assert [one.asked for one in opened] == [["initialize", "ping", "tools/call"]]


async def test_a_client_without_subscriptions_sends_no_pings() -> None:
    async with playing(mute, heartbeat_seconds=0.001) as (client, opened):
        with pytest.raises(TimeoutError):
            await client.raw.call_tool("add", timeout=0.02)
        assert client.connected
        assert opened[0].asked == ["initialize", "tools/call"]


async def test_no_ping_is_sent_during_a_call() -> None:
    async with playing(mute, good, heartbeat_seconds=0.001) as (client, opened), anyio.create_task_group() as tasks:
        tasks.start_soon(client.raw.call_tool, "add")
        while "tools/call" not in opened[0].asked:
            await anyio.lowlevel.checkpoint()
        async with client.changes() as changes:
            with anyio.move_on_after(0.02):
                await anext(changes)
            opened[0].tell(Response(2, {"content": []}))
            assert await anext(changes) == Change("missed")
    assert opened[0].asked == ["initialize", "tools/call", "ping"]

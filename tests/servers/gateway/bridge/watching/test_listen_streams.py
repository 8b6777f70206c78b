"""`ListenStreams`: the number of streams, and the resources of each."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from servers.gateway.bridge.watching import listen_streams
from servers.gateway.bridge.watching.listen_streams import ListenStreams
from shared.client.connection import changes
from shared.client.connection.subscription import Change
from shared.concurrency import TaskSet
from shared.errors import PeerError, ResourceNotFound
from shared.server.dispatch.limits import Limits
from tests.servers.gateway.bridge.telling import until
from tests.shared.client.small import Small


class Heard(Small):
    """The server, and the updates of its resources."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Change] = []
        self.gone: set[str] = set()
        """Resources that are served no longer."""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[ListenStreams]:
        """The streams of one client."""
        failures: list[BaseException] = []
        crew = TaskSet(failures.append)
        async with self.connected(mode="stateless") as client:
            try:
                yield ListenStreams(client, crew, self.told.append)
            finally:
                await crew.stop()
        assert failures == []

    async def hold(self, ctx: object, uri: str) -> str:
        if uri in self.gone:
            raise ResourceNotFound(uri)
        return await super().hold(ctx, uri)

    def serves(self, *wanted: str) -> bool:
        """Whether exactly these resources are in one stream."""
        held = self.running.changes
        return (
            held.subscribed_resources == len(wanted)
            and all(map(held.has_subscribers, wanted))
            and len(self.running.calls) == 1
        )


def uris(first: int, last: int) -> list[str]:
    return [f"memo://{number}" for number in range(first, last)]


async def added(streams: ListenStreams, wanted: list[str]) -> dict[str, bool]:
    found: dict[str, bool] = {}

    async def add(uri: str) -> None:
        found[uri] = await streams.add(uri)

    async with anyio.create_task_group() as tasks:
        for uri in wanted:
            tasks.start_soon(add, uri)
    return found


async def test_resources_added_together_share_a_stream() -> None:
    heard = Heard()
    async with heard.listening() as streams:
        assert await added(streams, ["http://x", *uris(0, 50)]) == {
            "http://x": False,
            **dict.fromkeys(uris(0, 50), True),
        }
        assert (streams.stream_count, len(heard.subscribed)) == (1, 50)
        heard.running.changes.resource("memo://7")
        await until(lambda: heard.told)
        assert heard.told == [Change("resource", "memo://7")]


async def test_a_new_stream_takes_over_the_resources_of_small_streams() -> None:
    heard = Heard()
    async with heard.listening() as streams:
        most = 0
        for uri in uris(0, 16):
            assert await streams.add(uri)
            most = max(most, streams.stream_count)
        assert (streams.stream_count, most) == (1, 4)
        await until(lambda: heard.serves(*uris(0, 16)))
        heard.running.changes.resource("memo://0")
        await until(lambda: heard.told)
        assert heard.told == [Change("resource", "memo://0")]


async def test_a_large_stream_is_not_reopened_for_a_new_resource() -> None:
    heard = Heard()
    async with heard.listening() as streams:
        await added(streams, uris(0, 20))
        await added(streams, uris(20, 25))
        assert streams.stream_count == 2


async def test_the_resources_of_a_stream_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen_streams, "MAX_URIS", 10)  # it is some hundreds, which nobody may set
    heard = Heard()
    async with heard.listening() as streams:
        await added(streams, uris(0, 25))
        assert streams.stream_count == 3
        await added(streams, uris(25, 40))
        assert streams.stream_count == 4


async def test_a_stream_without_resources_is_closed() -> None:
    heard = Heard()
    async with heard.listening() as streams:
        await added(streams, uris(0, 3))
        for uri in uris(0, 3):
            await streams.remove(uri)
        assert streams.stream_count == 0
        await until(lambda: heard.subscribed == [])


async def test_removed_resources_are_not_taken_over() -> None:
    heard = Heard()
    async with heard.listening() as streams:
        await added(streams, uris(0, 3))
        await streams.remove("memo://1")
        await added(streams, uris(3, 6))
        await until(lambda: heard.serves("memo://0", *uris(2, 6)))


async def test_a_refused_stream_leaves_the_others_open() -> None:
    heard = Heard()
    heard.app.limits = Limits(streams=1)
    async with heard.listening() as streams:
        await added(streams, uris(0, 3))
        with pytest.raises(PeerError, match="1 streams are open"):
            await streams.add("memo://9")
        assert heard.serves(*uris(0, 3))


async def test_resources_added_together_are_refused_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen_streams, "MAX_URIS", 2)
    heard = Heard()
    heard.app.limits = Limits(streams=1)
    async with heard.listening() as streams:
        with pytest.raises(ExceptionGroup):
            await added(streams, uris(0, 4))
        assert streams.stream_count == 0


async def test_a_resource_refused_in_a_new_stream_is_reported_as_changed() -> None:
    """A client that then reads it learns the reason."""
    heard = Heard()
    async with heard.listening() as streams:
        await streams.add("memo://0")
        heard.gone.add("memo://0")
        assert await streams.add("memo://1")
        assert heard.told == [Change("resource", "memo://0")]
        await until(lambda: heard.serves("memo://1"))


async def test_waiting_raises_when_the_connection_ends() -> None:
    heard = Heard()
    async with heard.listening() as streams:
        await streams.add("memo://0")
        await heard.lines[0].aclose()
        with pytest.raises(ConnectionError):
            await streams.add("memo://1")


async def test_a_stream_that_the_server_closed_is_reopened(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", listen_streams._log.name)
    # A clock that is set forward would end what bounds the test, too.
    monkeypatch.setattr(listen_streams, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(changes, "backoff", lambda _failed: 0)
    heard = Heard()
    async with heard.listening() as streams:
        await streams.add("memo://0")
        # A stream that is refused as one too many would be asked for again by the client itself.
        heard.running.calls.limits = Limits(subscriptions=0)
        (call,) = heard.running.calls._tasks  # what a server does that is about to close
        call.link.session.end_listen(call)
        heard.running.calls.cancel(call)
        call.link.send_soon()
        await until(lambda: "has ended" in caplog.text)
        assert heard.told == []
        heard.running.calls.limits = Limits()
        await until(lambda: heard.told)
        assert heard.told == [Change("resource", "memo://0")]
        assert heard.serves("memo://0")

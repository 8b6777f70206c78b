"""The link of a replica to Redis: a batch takes effect once, or not at all after the lease has expired."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from redis.asyncio import Redis, UnixDomainSocketConnection

from shared.contracts import Notice, SessionRecord
from shared.errors import Unavailable
from shared.protocol.session.handshake import NEW
from shared.protocol.wire.jsonrpc import Notification
from shared.stores.redis.link import MAX_QUEUED_BYTES
from shared.stores.redis.scripts import LEAVE
from shared.stores.redis.stores import RETRY_SECONDS, RedisReplica, Stores
from tests.clock import forward
from tests.quiet import quiet
from tests.redis_server import RedisServer
from tests.shared.stores.conftest import rest
from tests.shared.stores.redis.breaking import Watching, connecting, fresh, plain, proxied, until

LEASE = 6.0
RECORD = SessionRecord("s", None, "", 60, NEW)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server that the test may stop. It persists every answered write."""
    server = RedisServer(tmp_path, "--appendonly", "yes", "--appendfsync", "always")
    server.start()
    yield server
    server.stop(kill=True)


def methods_received(replica: RedisReplica) -> list[str]:
    """Returns the list in which the methods of received news are recorded."""
    methods: list[str] = []
    replica.bus.receive(lambda news: methods.append(getattr(news.message, "method", "")))
    return methods


def news(method: object) -> Notice:
    return Notice("s", Notification(str(method)))


async def batch_sent(replica: RedisReplica) -> None:
    """Waits until a batch is on its way."""
    while not replica.link._current_batch:  # no event says that it was sent
        await asyncio.sleep(0)


class TestConnectionsThatBreak:
    @pytest.mark.slow
    @pytest.mark.parametrize("how", ["request", "reply"])
    async def test_a_batch_takes_effect_once(self, redis_server: RedisServer, how: str) -> None:
        async with proxied(redis_server) as proxy:
            stores = fresh(redis_server, proxy.url)
            async with stores.join() as here, stores.join() as there:
                received = methods_received(here)
                for number in range(5):
                    await there.bus.deliver(here.number, news(number))
                    proxy.to_break = [how, how]
                    assert await here.blobs.claim(str(number), 60)
                    assert not proxy.to_break
                assert received == ["0", "1", "2", "3", "4"]

    async def test_a_late_batch_changes_nothing(self, redis_server: RedisServer) -> None:
        async with proxied(redis_server) as proxy:
            stores = fresh(redis_server, proxy.url)
            async with stores.join() as here:
                await rest(here)
                proxy.to_break = ["late"]
                await here.blobs.put(b"1", 60, "a")
                await here.blobs.put(b"2", 60, "a")
                assert b"LATE" in await proxy.deliver()
                assert await here.blobs.get("a") == b"2"

    async def test_scripts_are_loaded_again_after_a_flush(self, redis_server: RedisServer) -> None:
        async with fresh(redis_server).join() as here:
            for _ in range(2):
                plain(redis_server).script_flush()
                await here.blobs.put(b"1", 60, "a")
            assert await here.blobs.get("a") == b"1"


class TestRedisAway:
    @pytest.mark.slow
    async def test_a_restarted_redis_has_all_answered_changes(self, own_server: RedisServer) -> None:
        stores = fresh(own_server)
        async with stores.join() as here, stores.join() as there:
            await here.sessions.create(RECORD)
            await here.sessions.enter("s", None, (1,))
            await here.bus.deliver(there.number, news("a"))
            received, numbers = methods_received(there), (here.number, there.number)
            own_server.stop(kill=True)
            own_server.start()
            assert await there.sessions.serving_replica("s", 1) == here.number
            assert (await there.sessions.enter("s", None, (1,)) or [None, None])[1] is False
            await until(lambda: received)
            assert (received, numbers) == (["a"], (here.number, there.number))

    @pytest.mark.slow
    async def test_unanswered_calls_raise_unavailable_and_queued_operations_run_later(
        self, own_server: RedisServer
    ) -> None:
        stores = fresh(own_server)
        async with stores.join() as here:
            await rest(here)
            own_server.stop()
            pending = [asyncio.create_task(here.blobs.claim("a", 60))]
            here.sessions.watch("s", "u", is_watched=True)
            here.link.enqueue("put_blob", "told", b"1", 60_000)
            await until(lambda: here.disconnect_reason is not None)
            assert "Redis can't be reached" in (here.disconnect_reason or "")
            forward(2.1)
            with pytest.raises(Unavailable) as caught:
                await pending[0]
            assert caught.value.data["mayHaveRun"]
            with pytest.raises(Unavailable):
                await asyncio.wait_for(here.blobs.claim("b", 60), 0.01)  # at once
            own_server.start()
            await until(lambda: here.disconnect_reason is None)
            assert await here.blobs.get("told") == b"1"
            assert await here.blobs.claim("b", 60)

    @pytest.mark.slow
    async def test_a_hanging_redis_counts_as_unreachable(self, own_server: RedisServer) -> None:
        async with fresh(own_server).join() as here:
            await rest(here)
            own_server.send(signal.SIGSTOP)
            try:
                pending = asyncio.create_task(here.blobs.claim("a", 60))
                await batch_sent(here)
                await quiet()
                forward(3)
                await until(lambda: here.disconnect_reason is not None)
                with pytest.raises(Unavailable):
                    await pending
            finally:
                own_server.send(signal.SIGCONT)
            await until(lambda: here.disconnect_reason is None)
            assert await here.blobs.claim("b", 60)

    @pytest.mark.slow
    async def test_an_outage_longer_than_the_lease_gives_the_replica_a_new_number(
        self, own_server: RedisServer
    ) -> None:
        stores = fresh(own_server, lease_seconds=LEASE)
        async with stores.join() as here:
            watching, number = Watching(here), here.number
            await here.sessions.create(RECORD)
            own_server.stop()
            pending = asyncio.create_task(here.blobs.put(b"1", 60, "asked"))
            here.link.enqueue("put_blob", "told", b"1", 60_000)
            await until(lambda: here.disconnect_reason is not None)
            forward(LEASE + 1)
            await until(lambda: watching.heard)
            assert watching.heard == [("lost", number)]
            with pytest.raises(Unavailable):
                await pending
            with pytest.raises(Unavailable):
                await here.sessions.enter("s", None)
            here.link.enqueue("put_blob", "between", b"1", 60_000)
            own_server.start()
            await until(lambda: len(watching.heard) > 1)
            assert watching.heard[1:] == [("returned", here.number)]
            assert (here.number != number, here.disconnect_reason) == (True, None)
            assert [await here.blobs.get(name) for name in ("asked", "told", "between")] == [None] * 3
            assert await here.sessions.enter("s", None) is not None

    @pytest.mark.slow
    async def test_a_redis_without_its_data_gives_all_replicas_new_numbers(self, tmp_path: Path) -> None:
        server = RedisServer(tmp_path)
        server.start()
        stores = fresh(server)
        async with stores.join() as here, stores.join() as there:
            watching = [Watching(one) for one in (here, there)]
            server.stop(kill=True)
            server.start()
            for one in (here, there):
                one.link.poll_inbox()
            await until(lambda: all(len(one.heard) == 2 for one in watching))
            assert here.number != there.number
            await rest(here, there)
            await here.sessions.create(RECORD)
            assert (await there.sessions.enter("s", None, (1,)) or [None, None])[1]
            assert await here.sessions.serving_replica("s", 1) == there.number
        server.stop()


class TestReplicasThatStop:
    @pytest.mark.slow
    async def test_operations_queued_before_the_lease_expired_are_dropped(self, redis_server: RedisServer) -> None:
        async with fresh(redis_server, lease_seconds=1.0).join() as here:
            watching, number = Watching(here), here.number
            await rest(here)
            here.link.enqueue("put_blob", "told", b"1", 60_000)
            with plain(redis_server) as other:  # blocks the event loop until the lease has expired
                while other.exists(f"{here.link.prefix}replica:{number}"):
                    pass
            await until(lambda: len(watching.heard) >= 2)
            assert watching.heard[:2] == [("lost", number), ("returned", here.number)]
            assert await here.blobs.get("told") is None

    @pytest.mark.slow
    async def test_answers_read_after_the_lease_expired_raise_unavailable(self, redis_server: RedisServer) -> None:
        async with fresh(redis_server, lease_seconds=1.0).join() as here:
            await here.sessions.create(RECORD)
            await quiet()
            pending = asyncio.create_task(here.sessions.enter("s", None, (1,)))
            await batch_sent(here)
            with plain(redis_server) as other:
                while other.exists(f"{here.link.prefix}replica:{here.number}"):
                    pass
            with pytest.raises(Unavailable):
                await pending

    async def test_an_update_raises_unavailable_when_the_replica_is_lost(self, redis_server: RedisServer) -> None:
        changed = replace(NEW, roots_changed=1)
        stores = fresh(redis_server)
        async with stores.join() as here, stores.join() as there:
            watching = Watching(here)
            await here.sessions.create(RECORD)
            here.link.give_up_lease("the test says so")
            with pytest.raises(Unavailable):
                await here.sessions.update("s", NEW, changed)
            await until(lambda: len(watching.heard) >= 2)
            await here.sessions.update("s", NEW, changed)
            assert await there.sessions.enter("s", None) == (replace(RECORD, snapshot=changed), True)

    async def test_a_replica_whose_lease_expired_by_its_own_clock_rejoins(self, redis_server: RedisServer) -> None:
        async with fresh(redis_server, lease_seconds=60).join() as here:
            watching, number = Watching(here), here.number
            await rest(here)
            forward(61)
            await until(lambda: len(watching.heard) >= 2)
            assert watching.heard[:2] == [("lost", number), ("returned", here.number)]
            assert here.number != number

    async def test_a_rejoined_replica_receives_news_at_once(self, redis_server: RedisServer) -> None:
        stores = fresh(redis_server)
        async with stores.join() as here, stores.join() as there:
            watching, received = Watching(here), methods_received(here)
            here.link.give_up_lease("the test says so")
            await until(lambda: len(watching.heard) >= 2)
            await rest(here)
            await there.bus.deliver(here.number, news("a"))
            await until(lambda: received)  # renewals come every thousand seconds

    async def test_leaving_runs_all_queued_operations(self, redis_server: RedisServer) -> None:
        stores = fresh(redis_server)
        async with stores.join() as there:
            async with stores.join() as here:
                watching = Watching(here)
                for number in range(1_000):
                    here.link.enqueue("put_blob", str(number), b"1", 60_000)
            assert [await there.blobs.get(str(number)) for number in (0, 500, 999)] == [b"1"] * 3
            assert not await there.bus.deliver(here.number, news("a"))
            assert not watching.heard

    async def test_calls_while_leaving_raise_unavailable(self, redis_server: RedisServer) -> None:
        async with fresh(redis_server).join() as here:
            leaving = asyncio.create_task(here.link.leave())
            await until(lambda: not here.link.is_joined or leaving.done())
            with pytest.raises(Unavailable):
                await here.blobs.get("a")
            await leaving


class TestQueue:
    @pytest.mark.slow
    @pytest.mark.parametrize("text", [b"x" * 1_048_576, "x" * 1_048_576])
    async def test_queued_operations_have_a_size_limit(self, own_server: RedisServer, text: bytes | str) -> None:
        async with fresh(own_server).join() as here:
            watching = Watching(here)
            await rest(here)
            own_server.stop()
            queued = 0
            while not watching.heard and queued < 2 * MAX_QUEUED_BYTES:
                here.link.enqueue("put_blob", "a", text, 60_000)
                queued += len(text)
                await asyncio.sleep(0)
            assert queued <= MAX_QUEUED_BYTES + 2 * len(text)
            assert here.disconnect_reason == "too much data is waiting for Redis"
            own_server.start()
            await until(lambda: len(watching.heard) == 2)

    async def test_a_cancelled_claim_is_released(self, redis_server: RedisServer) -> None:
        async with fresh(redis_server).join() as here:
            await here.sessions.create(RECORD)
            for turns in range(6):  # before it is sent, on its way, in the turn of the answer
                pending = asyncio.create_task(here.sessions.enter("s", None, (1,)))
                await asyncio.sleep(0)
                if turns:
                    plain(redis_server).ping()
                for _ in range(turns - 1):
                    await asyncio.sleep(0)
                pending.cancel()
                results = await asyncio.gather(pending, return_exceptions=True)
                if not isinstance(results[0], asyncio.CancelledError):
                    here.sessions.leave("s", (1,))
                await rest(here)
                assert await here.sessions.serving_replica("s", 1) is None

    async def test_cancelling_a_refused_claim_releases_nothing(self, redis_server: RedisServer) -> None:
        async with fresh(redis_server).join() as here:
            await here.sessions.create(RECORD)
            await here.sessions.enter("s", None, (1,))
            again = asyncio.create_task(here.sessions.enter("s", None, (1,)))
            await batch_sent(here)
            again.cancel()
            await rest(here)
            assert await here.sessions.serving_replica("s", 1) == here.number


class FailingOver:
    """A socket path that leads to one Redis, and after `fail_over` to another."""

    def __init__(self, folder: Path, before: RedisServer, after: RedisServer) -> None:
        self.socket = folder / "redis.sock"
        self.socket.symlink_to(before.socket)
        self.before = before
        self._after = after

    def fail_over(self) -> None:
        self.socket.unlink()
        self.socket.symlink_to(self._after.socket)
        with plain(self.before) as other:
            other.execute_command("REPLICAOF", "127.0.0.1", "1")


@pytest.fixture
def failing_over(tmp_path: Path) -> Iterator[FailingOver]:
    with ExitStack() as stack:
        servers = []
        for name in ("before", "after"):
            (tmp_path / name).mkdir()
            servers.append(RedisServer(tmp_path / name))
            servers[-1].start()
            stack.callback(servers[-1].stop)
        yield FailingOver(tmp_path, *servers)


async def test_a_demoted_primary_is_looked_up_by_name_again(failing_over: FailingOver) -> None:
    async with fresh(failing_over.before, f"unix://{failing_over.socket}").join() as here:
        watching = Watching(here)
        failing_over.fail_over()
        with suppress(Unavailable):
            await here.blobs.claim("a", 60)
        await until(lambda: len(watching.heard) == 2 and here.disconnect_reason is None)
        assert await here.blobs.claim("a", 60)


class PausedConnection(UnixDomainSocketConnection):
    """While `holds` is set, the next connection waits for `go_on` before the last command of its handshake, which the
    library sends twice over a UNIX socket."""

    holds: ClassVar[bool] = False
    go_on: ClassVar[asyncio.Event]
    said = 0

    async def _send_packed_command(self, command: Any) -> None:  # the library has no public hook
        if b"LIB-VER" in b"".join(command):
            self.said += 1
            if PausedConnection.holds and self.said == 2:
                PausedConnection.holds = False
                await PausedConnection.go_on.wait()
        await super()._send_packed_command(command)


async def test_a_failover_while_connecting_does_not_end_the_replica(
    failing_over: FailingOver,
) -> None:
    def connect() -> Redis:
        client = connecting(f"unix://{failing_over.socket}")()
        client.connection_pool.connection_class = PausedConnection
        return client

    PausedConnection.go_on = asyncio.Event()
    async with Stores(connect, "held:", 60.0, b"secret").join() as here:
        watching = Watching(here)
        PausedConnection.holds = True
        failing_over.fail_over()
        with suppress(Unavailable):
            await here.blobs.claim("a", 60)
        assert not PausedConnection.holds, "the connection on which it listens was open before"
        PausedConnection.go_on.set()
        await until(lambda: len(watching.heard) == 2 and here.disconnect_reason is None)
        assert await here.blobs.claim("a", 60)


class SlowToLeave(Redis):
    """A client whose leave script takes longer than a replica waits before it rejoins."""

    async def eval(self, script: str, *words: Any) -> Any:
        if script == LEAVE:
            await asyncio.sleep(3 * RETRY_SECONDS)
        answer: Any = super().eval(script, *words)
        return await answer


async def test_a_slowly_leaving_replica_does_not_rejoin(redis_server: RedisServer) -> None:
    stores = Stores(lambda: SlowToLeave.from_url(redis_server.url), "slow to leave:", 60.0, b"secret")
    async with stores.join() as here:
        watching, number = Watching(here), here.number
    assert (watching.heard, here.number) == ([], number)
    with plain(redis_server) as other:
        assert other.smembers("slow to leave:replicas") == set()


async def test_an_invalid_unicode_name_does_not_break_the_link(redis_server: RedisServer) -> None:
    async with fresh(redis_server).join() as here:
        assert [await here.blobs.claim(name, 60) for name in ("\ud800", "\ud800", "a")] == [True, False, True]

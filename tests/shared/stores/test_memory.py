"""The contracts of Bus and SessionStore, in memory and in Redis; and that the stores in memory, which live as long as
the server, free the memory of ended sessions."""

from dataclasses import replace
from weakref import ref

from shared.contracts import Notice, Post, Replica, SessionRecord
from shared.protocol.http.rules import refuse
from shared.protocol.identity import Principal
from shared.protocol.session.events import Change
from shared.protocol.session.handshake import FIRST_PEER, NEW, Snapshot, State
from shared.protocol.wire.jsonrpc import Notification
from shared.stores.memory import Stores
from shared.stores.memory_log import MemoryEvents, MemoryLog
from shared.transports.http.limits.endpoint_limits import SessionLimits
from tests.clock import forward
from tests.quiet import quiet
from tests.shared.stores.conftest import Kind, joined, rest

ADA = Principal("ada")
PEER = replace(FIRST_PEER, principal=ADA)
RECORD = SessionRecord("s", ADA, "ada@here", 60, NEW)
CHANGED = replace(NEW, roots_changed=1)
LIMITS = SessionLimits()


class TestBus:
    async def test_replica_numbers_are_unique(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            first = {here.number, there.number}
        async with stores.join() as later:
            assert len({*first, later.number}) == 3

    async def test_news_arrive_in_order_at_one_replica(self, stores: Kind) -> None:
        sent = [Notice("s", Notification(f"n/{number}")) for number in range(3)]
        async with joined(stores, 3) as (here, there, other):
            received: dict[int, list[Notice]] = {one.number: [] for one in (here, there, other)}
            for one in (here, there, other):
                one.bus.receive(received[one.number].append)
            for one in sent:
                assert await here.bus.deliver(there.number, one)
            await rest(here, there, other)
            assert received == {here.number: [], there.number: sent, other.number: []}

    async def test_posts_arrive_unchanged_with_their_principal(self, stores: Kind) -> None:
        ada = Principal("ada", "Ada", frozenset({"read"}), "app", 1.5)
        sent = [Notice("s", post=Post(b'{"a": 1}\xff', ada, "2025-03-26")), Notice("s", post=Post(b"", None))]
        async with joined(stores, 2) as (here, there):
            received: list[Notice] = []
            there.bus.receive(received.append)
            for one in sent:
                assert await here.bus.deliver(there.number, one)
            await rest(here, there)
            assert received == sent
            principal = received[0].post and received[0].post.principal
            assert principal is not None
            assert (principal.name, principal.scopes, principal.client, principal.expires) == (
                "Ada",
                frozenset({"read"}),
                "app",
                1.5,
            )

    async def test_news_wait_for_a_receiver(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            await here.bus.deliver(there.number, Notice("s"))
            await rest(here, there)
            received: list[Notice] = []
            there.bus.receive(received.append)
            await rest(here, there)
            assert received == [Notice("s")]

    async def test_delivery_to_a_replica_that_left_fails(self, stores: Kind) -> None:
        async with joined(stores, 1) as (here,):
            async with stores.join() as there:
                pass
            assert not await here.bus.deliver(there.number, Notice("s"))

    async def test_a_change_reaches_all_other_replicas(self, stores: Kind) -> None:
        async with joined(stores, 3) as replicas:
            received: list[tuple[int, str, Change]] = []
            for one in replicas:
                one.bus.listen(lambda run, change, number=one.number: received.append((number, run, change)))
            first, second = Change("resource", "file:///a", "file:///a#b"), Change("tools")
            replicas[0].bus.publish("ada", first)
            replicas[0].bus.publish("", second)
            await rest(*replicas)
            for one in replicas[1:]:
                changes = [(run, change) for number, run, change in received if number == one.number]
                assert changes == [("ada", first), ("", second)]
            assert all(number != replicas[0].number for number, _, _ in received)


def news_of(replica: Replica) -> list[Notice]:
    """Returns the list in which the news of a replica are recorded."""
    news: list[Notice] = []
    replica.bus.receive(news.append)
    return news


class TestSessionStore:
    async def test_a_session_is_found_by_every_replica(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            for one in (here, there):
                assert await one.sessions.enter("s", ADA) == (RECORD, True)

    async def test_a_session_of_another_principal_is_unknown(self, stores: Kind) -> None:
        async with joined(stores, 1) as (here,):
            await here.sessions.create(RECORD)
            for id_, principal in (("s", Principal("bob")), ("s", None), ("t", ADA)):
                assert await here.sessions.enter(id_, principal) is None

    async def test_a_session_belongs_to_its_principal_whatever_the_scopes(self, stores: Kind) -> None:
        async with joined(stores, 1) as (here,):
            await here.sessions.create(RECORD)
            assert await here.sessions.enter("s", Principal("ada", scopes=frozenset({"write"}))) == (RECORD, True)

    async def test_a_request_id_is_claimed_once_across_replicas(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            assert await here.sessions.enter("s", ADA, (1, "1")) == (RECORD, True)
            assert await here.sessions.enter("s", ADA, (1,)) == (RECORD, False)
            assert await there.sessions.enter("s", ADA, (2, 1)) == (RECORD, False)
            assert [await there.sessions.serving_replica("s", id_) for id_ in (1, "1", 2)] == [
                here.number,
                here.number,
                None,
            ]

    async def test_a_released_request_id_is_free(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            await here.sessions.enter("s", ADA, (1, 2))
            here.sessions.leave("s", (1,))
            assert await there.sessions.enter("s", ADA, (1,)) == (RECORD, True)
            assert [await here.sessions.serving_replica("s", id_) for id_ in (1, 2)] == [there.number, here.number]

    async def test_operations_on_an_unknown_session_do_nothing(self, stores: Kind) -> None:
        async with joined(stores, 1) as (here,):
            here.sessions.leave("s", (1,))
            await here.sessions.update("s", NEW, CHANGED)
            here.sessions.delete("s")
            assert await here.sessions.serving_replica("s", 1) is None

    async def test_an_update_reaches_the_other_replicas_with_the_session(self, stores: Kind) -> None:
        async with joined(stores, 3) as replicas:
            here, there, _ = replicas
            received = [news_of(one) for one in replicas]
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            await here.sessions.update("s", NEW, CHANGED)
            await rest(*replicas)
            assert received == [[], [Notice("s", snapshot=CHANGED)], []]
            assert await there.sessions.enter("s", ADA) == (replace(RECORD, snapshot=CHANGED), True)

    async def test_concurrent_updates_at_two_replicas_are_merged(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            received = [news_of(one) for one in (here, there)]
            opening = Snapshot(State.OPENING, PEER)
            await here.sessions.create(replace(RECORD, snapshot=opening))
            await there.sessions.enter("s", ADA)
            opened = replace(opening, state=State.OPEN, roots_changed=1)
            verbose = replace(opening, peer=replace(PEER, log_level="debug"), roots_changed=1)
            await here.sessions.update("s", opening, opened)
            await there.sessions.update("s", opening, verbose)
            await rest(here, there)
            merged = Snapshot(State.OPEN, verbose.peer, 2)
            assert received == [
                [Notice("s", snapshot=merged)],
                [Notice("s", snapshot=opened), Notice("s", snapshot=merged)],
            ]
            assert await here.sessions.enter("s", ADA) == (replace(RECORD, snapshot=merged), True)

    async def test_only_one_replica_watches_a_resource(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            received = [news_of(one) for one in (here, there)]
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            for one, id_, is_watched in (
                (here, "s", True),
                (there, "s", True),
                (here, "s", False),
                (here, "t", True),
            ):
                one.sessions.watch(id_, "file:///a", is_watched=is_watched)
                await rest(here, there)
            assert received == [[Notice("s", uri="file:///a")], [Notice("s", uri="file:///a")]]

    async def test_resources_watched_by_a_dead_replica_are_adopted(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            async with stores.join() as dead:
                await dead.sessions.create(RECORD)
                for uri in ("file:///a", "file:///b"):
                    dead.sessions.watch("s", uri, is_watched=True)
                dead.sessions.watch("s", "file:///b", is_watched=False)
                await rest(dead)
                assert list(await here.sessions.adopt("s")) == []
            assert list(await here.sessions.adopt("s")) == ["file:///a"]
            assert list(await there.sessions.adopt("s")) == []

    async def test_resources_watched_by_a_replica_that_released_the_session_are_adopted(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            here.sessions.watch("s", "file:///a", is_watched=True)
            here.sessions.release("s")
            await rest(here)
            assert list(await there.sessions.adopt("s")) == ["file:///a"]

    async def test_a_deleted_session_is_unknown_at_every_replica(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            received = [news_of(one) for one in (here, there)]
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            there.sessions.delete("s")
            await rest(here, there)
            assert received == [[Notice("s")], []]
            for one in (here, there):
                assert await one.sessions.enter("s", ADA) is None

    async def test_a_session_ends_when_it_expires_at_the_last_replica(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            assert not await here.sessions.lapse("s", is_busy=False)
            assert await there.sessions.lapse("s", is_busy=True)
            assert await here.sessions.enter("s", ADA) is None

    async def test_a_session_released_by_the_last_replica_lives_for_the_idle_time(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            here.sessions.release("s")
            await rest(here)
            await stores.let_pass(59)
            assert await there.sessions.enter("s", ADA) is not None
            there.sessions.release("s")
            await rest(there)
            await stores.let_pass(61)
            assert await there.sessions.enter("s", ADA) is None
            there.sessions.release("s")

    async def test_a_busy_replica_keeps_a_session_of_several_replicas(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            received = news_of(here)
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            assert not await here.sessions.lapse("s", is_busy=True)
            there.sessions.delete("s")
            await rest(here, there)
            assert received == [Notice("s")]

    async def test_a_session_ends_when_it_expires_at_all_busy_replicas(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            received = news_of(there)
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            assert not await there.sessions.lapse("s", is_busy=True)
            await here.sessions.enter("s", ADA)
            assert not await here.sessions.lapse("s", is_busy=True)
            assert await here.sessions.enter("s", ADA) is not None
            assert not await there.sessions.lapse("s", is_busy=True)
            assert await here.sessions.lapse("s", is_busy=True)
            await rest(here, there)
            assert received == [Notice("s")]

    async def test_a_session_outlives_its_replicas_for_the_idle_time(self, stores: Kind) -> None:
        async with joined(stores, 1) as (there,):
            async with stores.join() as here:
                for id_ in "st":
                    await here.sessions.create(replace(RECORD, id=id_))
                    await here.sessions.enter(id_, ADA, (1,))
            assert await there.sessions.serving_replica("s", 1) is None
            assert await there.sessions.enter("s", ADA) is not None
            await stores.let_pass(61)
            found = [await there.sessions.enter(id_, ADA) for id_ in "st"]
            assert [one is not None for one in found] == [True, False]


def stored(log: MemoryLog) -> tuple[int, int]:
    """Returns the number of stored bytes and of sessions; only this private state shows an empty session."""
    return log.stored_bytes, len(log._sessions)


async def test_an_expired_session_leaves_nothing_in_memory() -> None:
    stores = Stores()
    async with stores.join() as replica:
        await replica.sessions.create(RECORD)
        log = replica.log(LIMITS)
        log.session("s").session_stream().put(b"x")
        assert stored(log)[0] > 0
    assert stores.sessions
    forward(61)
    await quiet()
    assert (stored(log), stores.sessions, stores.orphans) == ((0, 0), {}, {})


async def test_an_ended_session_leaves_nothing_in_memory() -> None:
    async with Stores().join() as replica:
        log = replica.log(LIMITS)
        events = log.session("s")
        events.session_stream().put(b"x")
        events.close(refuse(404, "the session has ended"))
        log.drop("s")
        assert stored(log) == (0, 0)


class Traced(MemoryEvents):
    """The streams of a session, with support for weak references."""


async def test_streams_of_an_ended_session_are_freed_without_garbage_collection() -> None:
    events = Traced(MemoryLog(LIMITS))
    traced = ref(events)
    events.session_stream().put(b"x")
    events.close(refuse(404, "the session has ended"))
    del events
    assert traced() is None  # without the garbage collector


async def test_released_request_ids_take_no_memory() -> None:
    stores = Stores()
    async with stores.join() as replica:
        await replica.sessions.create(RECORD)
        await replica.sessions.enter("s", ADA, (1,))
        replica.sessions.leave("s", (1,))
        assert stores.sessions["s"].claims is None

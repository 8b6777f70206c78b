"""What a SessionStore promises: who a session is, who has it, and where its requests are."""

from dataclasses import replace

from shared.contracts import News, Replica, SessionRecord, Stores
from shared.protocol.identity import Principal
from shared.protocol.session.handshake import FIRST_PEER, NEW, Snapshot, State
from shared.protocol.wire.jsonrpc import Notification
from tests.clock import forward
from tests.quiet import quiet
from tests.stores.conftest import joined

ADA = Principal("ada")
RECORD = SessionRecord("s", ADA, "ada@here", 60, NEW)
CHANGED = replace(NEW, roots_changed=1)


def heard_by(replica: Replica) -> list[News]:
    """The news of one replica, as they come."""
    news: list[News] = []
    replica.bus.receive(news.append)
    return news


class TestSessionStore:
    async def test_a_session_is_found_by_every_replica(self, stores: Stores) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            for one in (here, there):
                assert await one.sessions.enter("s", ADA) == (RECORD, True)

    async def test_somebody_elses_session_is_as_unknown_as_none(self, stores: Stores) -> None:
        async with joined(stores, 1) as (here,):
            await here.sessions.create(RECORD)
            for id_, principal in (("s", Principal("bob")), ("s", None), ("t", ADA)):
                assert await here.sessions.enter(id_, principal) is None

    async def test_a_session_is_his_whatever_he_may_do_now(self, stores: Stores) -> None:
        async with joined(stores, 1) as (here,):
            await here.sessions.create(RECORD)
            assert await here.sessions.enter("s", Principal("ada", scopes=frozenset({"write"}))) == (RECORD, True)

    async def test_an_id_is_served_once_over_all_replicas(self, stores: Stores) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            assert await here.sessions.enter("s", ADA, (1, "1")) == (RECORD, True)
            assert await there.sessions.enter("s", ADA, (2, 1)) == (RECORD, False)
            assert [await there.sessions.owner("s", id_) for id_ in (1, "1", 2)] == [here.number, here.number, None]

    async def test_an_id_that_was_left_is_free(self, stores: Stores) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            await here.sessions.enter("s", ADA, (1, 2))
            here.sessions.leave("s", (1,))
            assert await there.sessions.enter("s", ADA, (1,)) == (RECORD, True)
            assert [await here.sessions.owner("s", id_) for id_ in (1, 2)] == [there.number, here.number]

    async def test_what_is_left_of_an_unknown_session_is_nothing(self, stores: Stores) -> None:
        async with joined(stores, 1) as (here,):
            here.sessions.leave("s", (1,))
            await here.sessions.update("s", NEW, CHANGED)
            here.sessions.delete("s")
            assert await here.sessions.owner("s", 1) is None

    async def test_a_change_is_told_to_the_others_that_have_the_session(self, stores: Stores) -> None:
        async with joined(stores, 3) as replicas:
            here, there, _ = replicas
            heard = [heard_by(one) for one in replicas]
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            await here.sessions.update("s", NEW, CHANGED)
            await quiet()
            assert heard == [[], [News("s", snapshot=CHANGED)], []]
            assert await there.sessions.enter("s", ADA) == (replace(RECORD, snapshot=CHANGED), True)

    async def test_changes_at_two_replicas_are_merged_and_told_to_both(self, stores: Stores) -> None:
        async with joined(stores, 2) as (here, there):
            heard = [heard_by(one) for one in (here, there)]
            begun = Snapshot(State.OPENING, FIRST_PEER)
            await here.sessions.create(replace(RECORD, snapshot=begun))
            await there.sessions.enter("s", ADA)
            opened = replace(begun, state=State.OPEN, roots_changed=1)
            verbose = replace(begun, peer=replace(FIRST_PEER, log_level="debug"), roots_changed=1)
            await here.sessions.update("s", begun, opened)
            await there.sessions.update("s", begun, verbose)
            await quiet()
            merged = Snapshot(State.OPEN, verbose.peer, 2)
            assert heard == [[News("s", snapshot=merged)], [News("s", snapshot=opened), News("s", snapshot=merged)]]
            assert await here.sessions.enter("s", ADA) == (replace(RECORD, snapshot=merged), True)

    async def test_news_of_a_session_are_told_to_the_others_that_have_it(self, stores: Stores) -> None:
        async with joined(stores, 3) as replicas:
            here, there, _ = replicas
            heard = [heard_by(one) for one in replicas]
            news = News("s", Notification("n"))
            await here.sessions.tell(news)
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            await here.sessions.tell(news)
            await quiet()
            assert heard == [[], [news], []]

    async def test_a_session_that_was_deleted_is_gone_everywhere(self, stores: Stores) -> None:
        async with joined(stores, 2) as (here, there):
            heard = [heard_by(one) for one in (here, there)]
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            there.sessions.delete("s")
            await quiet()
            assert heard == [[News("s")], []]
            for one in (here, there):
                assert await one.sessions.enter("s", ADA) is None

    async def test_a_session_ends_when_the_last_replica_lets_it_lapse(self, stores: Stores) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            assert not await here.sessions.lapse("s", busy=False)
            assert await there.sessions.lapse("s", busy=True)
            assert await here.sessions.enter("s", ADA) is None

    async def test_a_session_that_the_last_replica_releases_goes_on_for_a_while(self, stores: Stores) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            here.sessions.release("s")
            forward(59)
            await quiet()
            assert await there.sessions.enter("s", ADA) is not None
            there.sessions.release("s")
            there.sessions.release("s")
            forward(61)
            await quiet()
            assert await there.sessions.enter("s", ADA) is None
            there.sessions.release("s")

    async def test_a_busy_replica_keeps_a_session_that_others_have(self, stores: Stores) -> None:
        async with joined(stores, 2) as (here, there):
            heard = heard_by(here)
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            assert not await here.sessions.lapse("s", busy=True)
            there.sessions.delete("s")
            await quiet()
            assert heard == [News("s")]

    async def test_a_session_ends_when_all_that_are_busy_with_it_let_it_lapse(self, stores: Stores) -> None:
        async with joined(stores, 2) as (here, there):
            heard = heard_by(there)
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            assert not await there.sessions.lapse("s", busy=True)
            await here.sessions.enter("s", ADA)
            assert not await here.sessions.lapse("s", busy=True)
            assert await here.sessions.enter("s", ADA) is not None
            assert not await there.sessions.lapse("s", busy=True)
            assert await here.sessions.lapse("s", busy=True)
            await quiet()
            assert heard == [News("s")]

    async def test_a_session_outlives_its_replicas_for_a_while(self, stores: Stores) -> None:
        async with joined(stores, 1) as (there,):
            async with stores.join() as here:
                for id_ in "st":
                    await here.sessions.create(replace(RECORD, id=id_))
                    await here.sessions.enter(id_, ADA, (1,))
            assert await there.sessions.owner("s", 1) is None
            assert await there.sessions.enter("s", ADA) is not None
            forward(61)
            await quiet()
            found = [await there.sessions.enter(id_, ADA) for id_ in "st"]
            assert [one is not None for one in found] == [True, False]

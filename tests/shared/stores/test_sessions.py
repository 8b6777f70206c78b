"""What a SessionStore promises: who a session is, who has it, and where its requests are."""

from dataclasses import replace

from shared.contracts import News, Replica, SessionRecord
from shared.protocol.identity import Principal
from shared.protocol.session.handshake import FIRST_PEER, NEW, Snapshot, State
from tests.shared.stores.conftest import Kind, joined, rest

ADA = Principal("ada")
PEER = replace(FIRST_PEER, principal=ADA)
RECORD = SessionRecord("s", ADA, "ada@here", 60, NEW)
CHANGED = replace(NEW, roots_changed=1)


def heard_by(replica: Replica) -> list[News]:
    """The news of one replica, as they come."""
    news: list[News] = []
    replica.bus.receive(news.append)
    return news


class TestSessionStore:
    async def test_a_session_is_found_by_every_replica(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            for one in (here, there):
                assert await one.sessions.enter("s", ADA) == (RECORD, True)

    async def test_somebody_elses_session_is_as_unknown_as_none(self, stores: Kind) -> None:
        async with joined(stores, 1) as (here,):
            await here.sessions.create(RECORD)
            for id_, principal in (("s", Principal("bob")), ("s", None), ("t", ADA)):
                assert await here.sessions.enter(id_, principal) is None

    async def test_a_session_is_his_whatever_he_may_do_now(self, stores: Kind) -> None:
        async with joined(stores, 1) as (here,):
            await here.sessions.create(RECORD)
            assert await here.sessions.enter("s", Principal("ada", scopes=frozenset({"write"}))) == (RECORD, True)

    async def test_an_id_is_served_once_over_all_replicas(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            assert await here.sessions.enter("s", ADA, (1, "1")) == (RECORD, True)
            assert await there.sessions.enter("s", ADA, (2, 1)) == (RECORD, False)
            assert [await there.sessions.owner("s", id_) for id_ in (1, "1", 2)] == [here.number, here.number, None]

    async def test_an_id_that_was_left_is_free(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            await here.sessions.enter("s", ADA, (1, 2))
            here.sessions.leave("s", (1,))
            assert await there.sessions.enter("s", ADA, (1,)) == (RECORD, True)
            assert [await here.sessions.owner("s", id_) for id_ in (1, 2)] == [there.number, here.number]

    async def test_what_is_left_of_an_unknown_session_is_nothing(self, stores: Kind) -> None:
        async with joined(stores, 1) as (here,):
            here.sessions.leave("s", (1,))
            await here.sessions.update("s", NEW, CHANGED)
            here.sessions.delete("s")
            assert await here.sessions.owner("s", 1) is None

    async def test_a_change_is_told_to_the_others_that_have_the_session(self, stores: Kind) -> None:
        async with joined(stores, 3) as replicas:
            here, there, _ = replicas
            heard = [heard_by(one) for one in replicas]
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            await here.sessions.update("s", NEW, CHANGED)
            await rest(*replicas)
            assert heard == [[], [News("s", snapshot=CHANGED)], []]
            assert await there.sessions.enter("s", ADA) == (replace(RECORD, snapshot=CHANGED), True)

    async def test_changes_at_two_replicas_are_merged_and_told_to_both(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            heard = [heard_by(one) for one in (here, there)]
            begun = Snapshot(State.OPENING, PEER)
            await here.sessions.create(replace(RECORD, snapshot=begun))
            await there.sessions.enter("s", ADA)
            opened = replace(begun, state=State.OPEN, roots_changed=1)
            verbose = replace(begun, peer=replace(PEER, log_level="debug"), roots_changed=1)
            await here.sessions.update("s", begun, opened)
            await there.sessions.update("s", begun, verbose)
            await rest(here, there)
            merged = Snapshot(State.OPEN, verbose.peer, 2)
            assert heard == [[News("s", snapshot=merged)], [News("s", snapshot=opened), News("s", snapshot=merged)]]
            assert await here.sessions.enter("s", ADA) == (replace(RECORD, snapshot=merged), True)

    async def test_one_replica_tells_of_a_resource(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            heard = [heard_by(one) for one in (here, there)]
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
            assert heard == [[News("s", uri="file:///a")], [News("s", uri="file:///a")]]

    async def test_what_a_replica_told_of_that_is_gone_another_one_adopts(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            async with stores.join() as gone:
                await gone.sessions.create(RECORD)
                for uri in ("file:///a", "file:///b"):
                    gone.sessions.watch("s", uri, is_watched=True)
                gone.sessions.watch("s", "file:///b", is_watched=False)
                await rest(gone)
                assert list(await here.sessions.adopt("s")) == []
            assert list(await here.sessions.adopt("s")) == ["file:///a"]
            assert list(await there.sessions.adopt("s")) == []

    async def test_what_a_replica_told_of_that_has_released_the_session_another_one_adopts(
        self, stores: Kind
    ) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            here.sessions.watch("s", "file:///a", is_watched=True)
            here.sessions.release("s")
            await rest(here)
            assert list(await there.sessions.adopt("s")) == ["file:///a"]

    async def test_a_session_that_was_deleted_is_gone_everywhere(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            heard = [heard_by(one) for one in (here, there)]
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            there.sessions.delete("s")
            await rest(here, there)
            assert heard == [[News("s")], []]
            for one in (here, there):
                assert await one.sessions.enter("s", ADA) is None

    async def test_a_session_ends_when_the_last_replica_lets_it_lapse(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            assert not await here.sessions.lapse("s", busy=False)
            assert await there.sessions.lapse("s", busy=True)
            assert await here.sessions.enter("s", ADA) is None

    async def test_a_session_that_the_last_replica_releases_goes_on_for_a_while(self, stores: Kind) -> None:
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

    async def test_a_busy_replica_keeps_a_session_that_others_have(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            heard = heard_by(here)
            await here.sessions.create(RECORD)
            await there.sessions.enter("s", ADA)
            assert not await here.sessions.lapse("s", busy=True)
            there.sessions.delete("s")
            await rest(here, there)
            assert heard == [News("s")]

    async def test_a_session_ends_when_all_that_are_busy_with_it_let_it_lapse(self, stores: Kind) -> None:
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
            await rest(here, there)
            assert heard == [News("s")]

    async def test_a_session_outlives_its_replicas_for_a_while(self, stores: Kind) -> None:
        async with joined(stores, 1) as (there,):
            async with stores.join() as here:
                for id_ in "st":
                    await here.sessions.create(replace(RECORD, id=id_))
                    await here.sessions.enter(id_, ADA, (1,))
            assert await there.sessions.owner("s", 1) is None
            assert await there.sessions.enter("s", ADA) is not None
            await stores.let_pass(61)
            found = [await there.sessions.enter(id_, ADA) for id_ in "st"]
            assert [one is not None for one in found] == [True, False]

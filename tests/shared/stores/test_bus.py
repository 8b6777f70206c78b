"""What a Bus promises: news reach one replica once and in order, changes all others."""

from shared.contracts import News, Post
from shared.protocol.identity import Principal
from shared.protocol.session.events import Change
from shared.protocol.wire.jsonrpc import Notification
from tests.shared.stores.conftest import Kind, joined, rest


class TestBus:
    async def test_every_replica_has_a_number_of_its_own(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            first = {here.number, there.number}
        async with stores.join() as later:
            assert len({*first, later.number}) == 3

    async def test_news_come_in_order_and_to_one_replica(self, stores: Kind) -> None:
        told = [News("s", Notification(f"n/{number}")) for number in range(3)]
        async with joined(stores, 3) as (here, there, other):
            heard: dict[int, list[News]] = {one.number: [] for one in (here, there, other)}
            for one in (here, there, other):
                one.bus.receive(heard[one.number].append)
            for one in told:
                assert await here.bus.deliver(there.number, one)
            await rest(here, there, other)
            assert heard == {here.number: [], there.number: told, other.number: []}

    async def test_what_was_posted_comes_as_it_is_and_with_who_sent_it(self, stores: Kind) -> None:
        ada = Principal("ada", "Ada", frozenset({"read"}), "app", 1.5)
        told = [News("s", post=Post(b'{"a": 1}\xff', ada, "2025-03-26")), News("s", post=Post(b"", None))]
        async with joined(stores, 2) as (here, there):
            heard: list[News] = []
            there.bus.receive(heard.append)
            for one in told:
                assert await here.bus.deliver(there.number, one)
            await rest(here, there)
            assert heard == told
            principal = heard[0].post and heard[0].post.principal
            assert principal is not None
            assert (principal.name, principal.scopes, principal.client, principal.expires) == (
                "Ada",
                frozenset({"read"}),
                "app",
                1.5,
            )

    async def test_news_wait_until_somebody_reads_them(self, stores: Kind) -> None:
        async with joined(stores, 2) as (here, there):
            await here.bus.deliver(there.number, News("s"))
            await rest(here, there)
            heard: list[News] = []
            there.bus.receive(heard.append)
            await rest(here, there)
            assert heard == [News("s")]

    async def test_who_is_gone_is_told_nothing(self, stores: Kind) -> None:
        async with joined(stores, 1) as (here,):
            async with stores.join() as there:
                pass
            assert not await here.bus.deliver(there.number, News("s"))

    async def test_a_change_is_told_to_all_others(self, stores: Kind) -> None:
        async with joined(stores, 3) as replicas:
            heard: list[tuple[int, str, Change]] = []
            for one in replicas:
                one.bus.hear(lambda run, change, number=one.number: heard.append((number, run, change)))
            first, second = Change("resource", "file:///a", "file:///a#b"), Change("tools")
            replicas[0].bus.publish("ada", first)
            replicas[0].bus.publish("", second)
            await rest(*replicas)
            for one in replicas[1:]:
                told = [(run, change) for number, run, change in heard if number == one.number]
                assert told == [("ada", first), ("", second)]
            assert all(number != replicas[0].number for number, _, _ in heard)

"""What a Bus promises: news reach one replica once and in order, wake-ups whoever listens."""

from shared.contracts import News, Stores
from shared.protocol.wire.jsonrpc import Notification
from tests.quiet import quiet
from tests.stores.conftest import joined


class TestBus:
    async def test_every_replica_has_a_number_of_its_own(self, stores: Stores) -> None:
        async with joined(stores, 2) as (here, there):
            assert [here.number, there.number] == [0, 1]
        async with stores.join() as later:
            assert later.number == 2

    async def test_news_come_in_order_and_to_one_replica(self, stores: Stores) -> None:
        told = [News("s", Notification(f"n/{number}")) for number in range(3)]
        async with joined(stores, 3) as (here, there, other):
            heard: dict[int, list[News]] = {one.number: [] for one in (here, there, other)}
            for one in (here, there, other):
                one.bus.receive(heard[one.number].append)
            for one in told:
                assert await here.bus.deliver(there.number, one)
            await quiet()
            assert heard == {here.number: [], there.number: told, other.number: []}

    async def test_news_wait_until_somebody_reads_them(self, stores: Stores) -> None:
        async with joined(stores, 2) as (here, there):
            await here.bus.deliver(there.number, News("s"))
            await quiet()
            heard: list[News] = []
            there.bus.receive(heard.append)
            await quiet()
            assert heard == [News("s")]

    async def test_who_is_gone_is_told_nothing(self, stores: Stores) -> None:
        async with joined(stores, 1) as (here,):
            async with stores.join() as there:
                pass
            assert not await here.bus.deliver(there.number, News("s"))

    async def test_a_topic_wakes_whoever_hears_of_it(self, stores: Stores) -> None:
        async with joined(stores, 2) as (here, there):
            woken: list[str] = []
            stop = here.bus.hear("t", lambda: woken.append("here"))
            there.bus.hear("t", lambda: woken.append("there"))
            here.bus.hear("u", lambda: woken.append("other"))
            there.bus.publish("t")
            await quiet()
            stop()
            here.bus.publish("t")
            await quiet()
            assert woken == ["here", "there", "there"]

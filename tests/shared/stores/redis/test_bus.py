"""Changes published while a replica is lost."""

from shared.protocol.session.events import Change
from shared.stores.redis.bus import MAX_CHANGES
from tests.quiet import quiet
from tests.redis_server import RedisServer
from tests.shared.stores.conftest import rest
from tests.shared.stores.redis.breaking import Watching, fresh, until


async def test_changes_published_while_lost_are_delivered_after_rejoining(redis_server: RedisServer) -> None:
    stores = fresh(redis_server)
    async with stores.join() as here, stores.join() as there:
        watching, received = Watching(here), list[Change]()
        there.bus.listen(lambda _run, change: received.append(change))
        changes = [Change("resource", f"a://{name}") for name in ("told", "queued", "later")]
        here.bus.publish("", changes[0])
        await quiet()
        await rest(here)
        here.bus.publish("", changes[1])
        here.link.give_up_lease("the test says so")
        here.bus.publish("", changes[2])
        await until(lambda: len(watching.heard) == 2)
        await rest(here, there)
        assert received == changes


async def test_changes_queued_while_lost_have_a_limit(redis_server: RedisServer) -> None:
    stores = fresh(redis_server)
    async with stores.join() as here, stores.join() as there:
        watching, received = Watching(here), list[Change]()
        there.bus.listen(lambda _run, change: received.append(change))
        here.link.give_up_lease("the test says so")
        for number in range(2 * MAX_CHANGES):
            here.bus.publish("", Change("resource", f"a://{number}"))
        await until(lambda: len(watching.heard) == 2)
        await rest(here, there)
        assert len(received) == MAX_CHANGES

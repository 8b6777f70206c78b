"""tasks.lua: a record changes by compare and set of its revision; there are no more tasks, and their results take no
more bytes, than the limits; all has an end."""

from typing import Any

from tests.redis_server import RedisServer
from tests.shared.stores.redis.scripted import Scripted, scripted

NOW = 1_000_000
LIVES = 60_000


async def create(
    one: Scripted,
    id_: str,
    client: str = "",
    principal: str = "",
    *,
    moment: int = NOW,
    limits: tuple[int, int] = (9, 9),
) -> int:
    made: int = await one.do("create_task", id_, id_, client, principal, moment, LIVES, *limits)
    return made


async def replace(one: Scripted, id_: str, known: int = 0, size: int = 0, *, small: int = 0, most: int = 100) -> int:
    done: int = await one.do("replace_task", id_, known, f"{id_} {known + 1}", size, small, most)
    return done


async def get(one: Scripted, id_: str, moment: int = NOW) -> Any:
    return await one.do("get_task", id_, moment)


async def test_a_record_changes_by_compare_and_set(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await create(one, "t")
        assert [await replace(each, "t") for each in (one, two)] == [1, 0]
        assert await replace(two, "t", 1) == 1
        assert await replace(two, "unknown") == 0
        assert await get(one, "t") == [b"t 2", 1]


async def test_whoever_asks_is_told_that_the_replica_of_a_task_is_gone(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await create(one, "t")
        await one.die()
        assert await get(two, "t") == [b"t", 0]


async def test_there_are_no_more_tasks_than_that(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        made = [await create(one, id_, client, limits=(3, 2)) for id_, client in ("1a", "2a", "3a", "4b", "5b")]
        assert made == [1, 1, 0, 1, 0]
        await one.do("forget_task", "1")
        assert [await create(one, id_, client, limits=(3, 2)) for id_, client in ("6a", "7a")] == [1, 0]


async def test_what_has_expired_is_not_found_and_makes_room(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await create(one, "t", "a", "ada", limits=(1, 1))
        await replace(one, "t", size=40)
        later = NOW + LIVES
        assert (await get(one, "t", later), await one.do("listed", "ada", later)) == (None, [])
        assert await create(one, "u", "a", "ada", moment=later, limits=(1, 1)) == 1
        assert await one.key("sizes") == {b"all": b"0"}


async def test_who_is_alone_has_room_for_all_results(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        for id_ in "tu":
            await create(one, id_)
        assert [await replace(one, id_, size=90) for id_ in "tu"] == [1, -1]
        assert await get(one, "u") == [b"u", 1]


async def test_one_of_several_leaves_as_much_as_it_has(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        for id_, client in ("1a", "2a", "3b"):
            await create(one, id_, client)
        assert [await replace(one, id_, size=size) for id_, size in (("1", 40), ("2", 40), ("3", 29))] == [1, -1, 1]


async def test_a_small_error_has_room_always_and_counts(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await create(one, "t", "a")
        assert await replace(one, "t", size=200, small=1) == 1
        assert await one.key("sizes") == {b"all": b"200", b"=a": b"200"}


async def test_sizes_are_those_of_the_results_that_are_there(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        for id_ in "tu":
            await create(one, id_, "a")
        for known, size in enumerate((10, 30, 20)):
            await replace(one, "t", known, size)
        await replace(one, "u", size=5)
        assert await one.key("sizes") == {b"all": b"25", b"=a": b"25"}
        await one.batch(("forget_task", "t"), ("forget_task", "t"))
        assert (await one.key("sizes"), await one.key("results")) == ({b"all": b"5", b"=a": b"5"}, {b"u": b"5 a"})
        await replace(one, "u", 1, 0)
        assert (await one.key("sizes"), await one.key("results")) == ({b"all": b"0"}, {})


async def test_what_has_expired_counts_no_more_where_room_is_needed(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        for id_ in "tu":
            await create(one, id_)
        await replace(one, "t", size=90)
        await one.expire("t:t")
        assert await replace(one, "u", size=90) == 1


async def test_what_is_said_of_all_tasks_is_there_as_long_as_the_last(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await create(one, "t", "a", "ada")
        await replace(one, "t", size=10)
        await one.do("hear_task", "t", NOW)
        keys = ("tasks", "results", "sizes", "tc:a", "tp:ada", "t:t")
        for key in keys:
            await one.client.pexpire(f"{one.prefix}{key}", 1_000)
        await create(one, "u", "a", "ada")
        left = {key: await one.left(key) for key in keys}
        assert all(LIVES - 1_000 < left[key] <= LIVES for key in keys[:-1])
        assert left["t:t"] <= 1_000 < LIVES < await one.left("th:t")


async def test_those_of_a_principal_are_listed_oldest_first(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        for moment, (id_, principal) in enumerate(("zp", "ap", "mq", "bp")):
            await create(one, id_, "", principal, moment=NOW - moment // 2)
            await replace(one, id_)
        await one.do("forget_task", "a")
        assert await one.do("listed", "p", NOW) == [[b"z 1", 1], [b"b 1", 1]]
        assert await one.do("listed", "nobody", NOW) == []


async def test_who_hears_of_a_task_is_told_until_it_is_gone(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 3) as (one, two, three):
        await create(one, "t")
        assert await two.do("hear_task", "t", NOW + 1_000) == LIVES - 1_000
        await three.batch(("hear_task", "t", NOW), ("unhear_task", "t"))
        await replace(one, "t")
        await one.do("forget_task", "t")
        assert [await each.inbox() for each in (one, two, three)] == [[], [[b"task", b"t"]] * 2, []]
        assert await two.do("hear_task", "t", NOW) == 0


async def test_who_heard_of_a_task_and_is_gone_is_forgotten(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await create(one, "t")
        await two.do("hear_task", "t", NOW)
        await two.die()
        await replace(one, "t")
        assert await one.left("th:t") == -2

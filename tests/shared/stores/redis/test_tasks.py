"""Tasks of dead and of rejoined replicas; and tasks.lua: the shared keys expire with the tasks. The contract of every
`TaskStore` is tested in tests/shared/stores/test_memory_tasks.py."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from shared.contracts import TaskLimits, TaskRecord
from shared.stores.redis.records import write_task
from tests.redis_server import RedisServer
from tests.shared.stores.conftest import rest
from tests.shared.stores.redis.breaking import Watching, fresh, until
from tests.shared.stores.redis.scripted import Scripted, scripted

LIMITS = TaskLimits()
NOW = 1_000_000
LIVES = 60_000


def task(id_: str = "t", status: str = "working") -> TaskRecord:
    return TaskRecord(id_, "extension", "ada", "ada", 0.0, 0.0, 60.0, status)  # type: ignore[arg-type]


async def test_a_running_task_of_a_dead_replica_has_failed_everywhere(redis_server: RedisServer) -> None:
    stores = fresh(redis_server)
    async with stores.join() as there, stores.join() as other:
        async with stores.join() as here:
            for id_, status in (("t", "working"), ("u", "input_required"), ("v", "completed"), ("w", "working")):
                await here.tasks(LIMITS).create(task(id_, status))
            assert {one.status for one in await there.tasks(LIMITS).list_by_owner("ada")} >= {"working"}
        found = await asyncio.gather(*[one.tasks(LIMITS).get(id_) for one in (there, other) for id_ in "tuv"])
        assert [one and one.status for one in found] == ["failed", "failed", "completed"] * 2
        assert found[:2] == found[3:5]
        assert found[0] is not None
        assert found[0].message == "the replica that ran it is gone; it is unknown whether it finished"
        error = {"code": -32603, "message": found[0].message, "data": {"mayHaveRun": True}}
        assert found[0].outcome == {"error": error}
        assert [one.status for one in await other.tasks(LIMITS).list_by_owner("ada")] == [
            *("failed", "failed", "completed", "failed")
        ]


async def test_a_task_of_a_dead_replica_fails_despite_a_concurrent_answer(
    redis_server: RedisServer,
) -> None:
    stores = fresh(redis_server)
    async with stores.join() as there:
        async with stores.join() as here:
            await here.tasks(LIMITS).create(task())
            stale = write_task(task())
            changed = replace(task(), answers={"q": {"result": {}}}, revision=1)
            assert await there.tasks(LIMITS).replace(task(), changed)
        found = await there.tasks(LIMITS)._fail_if_lost(stale, 0)  # as if the answer came in between
        assert (found.status, found.revision) == ("failed", 2)


@pytest.mark.slow
async def test_the_death_of_a_replica_wakes_listeners_of_its_tasks(redis_server: RedisServer) -> None:
    stores = fresh(redis_server, lease_seconds=1.0)
    async with stores.join() as there:
        woken = asyncio.Event()
        async with stores.join() as here:
            await here.tasks(LIMITS).create(task())
            there.tasks(LIMITS).listen("t", woken.set)
            await rest(here, there)
        async with asyncio.timeout(30):
            await woken.wait()


async def test_a_rejoined_replica_listens_to_its_tasks_but_does_not_run_them(
    redis_server: RedisServer,
) -> None:
    stores = fresh(redis_server)
    async with stores.join() as here, stores.join() as there:
        watching, woken = Watching(here), asyncio.Event()
        await here.tasks(LIMITS).create(task())
        await there.tasks(LIMITS).create(task("u"))
        here.link.give_up_lease("the test says so")
        here.tasks(LIMITS).listen("u", woken.set)
        await until(lambda: len(watching.heard) == 2)
        await rest(here)
        woken.clear()
        await there.tasks(LIMITS).forget("u")
        async with asyncio.timeout(30):
            await woken.wait()


async def test_a_task_whose_creation_was_cancelled_is_removed(redis_server: RedisServer) -> None:
    async with fresh(redis_server).join() as here:
        making = asyncio.create_task(here.tasks(LIMITS).create(task()))
        while not here.link._current_batch:  # no event says that it was sent
            await asyncio.sleep(0)
        making.cancel()
        await rest(here)
        assert await here.tasks(LIMITS).get("t") is None


# The script


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


async def put(one: Scripted, id_: str, known: int = 0, size: int = 0, *, small: int = 0, most: int = 100) -> int:
    done: int = await one.do("replace_task", id_, known, f"{id_} {known + 1}", size, small, most)
    return done


async def get(one: Scripted, id_: str, moment: int = NOW) -> Any:
    return await one.do("get_task", id_, moment)


async def test_sizes_are_the_sum_of_the_stored_results(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        for id_ in "tu":
            await create(one, id_, "a")
        for known, size in enumerate((10, 30, 20)):
            await put(one, "t", known, size)
        await put(one, "u", size=5)
        assert await one.key("sizes") == {b"all": b"25", b"=a": b"25"}
        await one.batch(("forget_task", "t"), ("forget_task", "t"))
        assert (await one.key("sizes"), await one.key("results")) == ({b"all": b"5", b"=a": b"5"}, {b"u": b"5 a"})
        await put(one, "u", 1, 0)
        assert (await one.key("sizes"), await one.key("results")) == ({b"all": b"0"}, {})


async def test_expired_results_do_not_count_against_the_size_limit(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        for id_ in "tu":
            await create(one, id_)
        await put(one, "t", size=90)
        await one.expire("t:t")
        assert await put(one, "u", size=90) == 1


async def test_shared_task_keys_live_as_long_as_the_last_task(redis_server: RedisServer) -> None:
    async with scripted(redis_server) as (one,):
        await create(one, "t", "a", "ada")
        await put(one, "t", size=10)
        await one.do("hear_task", "t", NOW)
        keys = ("tasks", "results", "sizes", "tc:a", "tp:ada", "t:t")
        for key in keys:
            await one.client.pexpire(f"{one.prefix}{key}", 1_000)
        await create(one, "u", "a", "ada")
        left = {key: await one.ttl(key) for key in keys}
        assert all(LIVES - 1_000 < left[key] <= LIVES for key in keys[:-1])
        assert left["t:t"] <= 1_000 < LIVES < await one.ttl("th:t")


async def test_a_dead_replica_is_removed_from_the_listeners_of_a_task(redis_server: RedisServer) -> None:
    async with scripted(redis_server, 2) as (one, two):
        await create(one, "t")
        await two.do("hear_task", "t", NOW)
        await two.die()
        await put(one, "t")
        assert await one.ttl("th:t") == -2

"""Tasks of replicas that are gone, and of those that come back."""

import asyncio
from dataclasses import replace

import pytest

from shared.contracts import TaskLimits, TaskRecord
from shared.stores.redis.records import write_task
from tests.redis_server import RedisServer
from tests.shared.stores.conftest import rest
from tests.shared.stores.redis.breaking import Watching, fresh, until

LIMITS = TaskLimits()


def task(id_: str = "t", status: str = "working") -> TaskRecord:
    return TaskRecord(id_, "extension", "ada", "ada", 0.0, 0.0, 60.0, status)  # type: ignore[arg-type]


async def test_a_task_of_a_dead_replica_has_failed_for_whoever_asks(redis_server: RedisServer) -> None:
    stores = fresh(redis_server)
    async with stores.join() as there, stores.join() as other:
        async with stores.join() as here:
            for id_, status in (("t", "working"), ("u", "input_required"), ("v", "completed"), ("w", "working")):
                await here.tasks(LIMITS).create(task(id_, status))
            assert {one.status for one in await there.tasks(LIMITS).listed("ada")} >= {"working"}
        found = await asyncio.gather(*[one.tasks(LIMITS).get(id_) for one in (there, other) for id_ in "tuv"])
        assert [one and one.status for one in found] == ["failed", "failed", "completed"] * 2
        assert found[:2] == found[3:5]
        assert found[0] is not None
        assert found[0].message == "the replica that ran it is gone; whether it was done is not known"
        error = {"code": -32603, "message": found[0].message, "data": {"mayHaveRun": True}}
        assert found[0].outcome == {"error": error}
        assert [one.status for one in await other.tasks(LIMITS).listed("ada")] == [
            *("failed", "failed", "completed", "failed")
        ]


async def test_a_task_of_a_dead_replica_has_failed_though_somebody_has_answered_it_meanwhile(
    redis_server: RedisServer,
) -> None:
    stores = fresh(redis_server)
    async with stores.join() as there:
        async with stores.join() as here:
            await here.tasks(LIMITS).create(task())
            stale = write_task(task())
            changed = replace(task(), answers={"q": {"result": {}}}, revision=1)
            assert await there.tasks(LIMITS).replace(task(), changed)
        found = await there.tasks(LIMITS)._current(stale, 0)
        assert (found.status, found.revision) == ("failed", 2)


@pytest.mark.slow
async def test_who_hears_of_a_task_hears_that_its_replica_is_gone(redis_server: RedisServer) -> None:
    stores = fresh(redis_server, lease_seconds=1.0)
    async with stores.join() as there:
        woken = asyncio.Event()
        async with stores.join() as here:
            await here.tasks(LIMITS).create(task())
            there.tasks(LIMITS).hear("t", woken.set)
            await rest(here, there)
        async with asyncio.timeout(30):
            await woken.wait()


async def test_one_that_comes_back_hears_of_its_tasks_as_before_and_does_not_run_them(
    redis_server: RedisServer,
) -> None:
    stores = fresh(redis_server)
    async with stores.join() as here, stores.join() as there:
        watching, woken = Watching(here), asyncio.Event()
        await here.tasks(LIMITS).create(task())
        await there.tasks(LIMITS).create(task("u"))
        here.link.lose("the test says so")
        here.tasks(LIMITS).hear("u", woken.set)
        await until(lambda: len(watching.heard) == 2)
        await rest(here)
        woken.clear()
        await there.tasks(LIMITS).forget("u")
        async with asyncio.timeout(30):
            await woken.wait()


async def test_a_task_that_was_begun_for_nobody_is_given_up(redis_server: RedisServer) -> None:
    async with fresh(redis_server).join() as here:
        making = asyncio.create_task(here.tasks(LIMITS).create(task()))
        while not here.link._under_way:
            await asyncio.sleep(0)
        making.cancel()
        await rest(here)
        assert await here.tasks(LIMITS).get("t") is None

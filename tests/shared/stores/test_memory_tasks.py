"""The contract of TaskStore across replicas: limits, expiry and listeners."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from shared.contracts import Replica, TaskLimits, TaskRecord, TaskStore
from shared.stores.memory_tasks import SMALL_BYTES, MemoryTasks
from tests.shared.stores.conftest import Kind, joined, rest

LIMITS = TaskLimits(total=4, of_one_client=3, result_bytes=10_000)


def task(id_: str, client: str = "", principal: str | None = None) -> TaskRecord:
    return TaskRecord(id_, "extension", principal, client, 0.0, 0.0, 60.0)


def completed(before: TaskRecord, size: int, *, kind: str = "result") -> TaskRecord:
    """Returns that task, completed with an outcome of so many bytes."""
    outcome = {kind: "a" * size}
    return replace(before, status="completed", outcome=outcome, revision=before.revision + 1)


async def create_completed(store: TaskStore, id_: str, size: int, client: str = "", *, kind: str = "result") -> None:
    """Creates a task, and completes it with an outcome of so many bytes."""
    before = task(id_, client)
    await store.create(before)
    current = await store.get(id_)
    assert current is not None
    assert await store.replace(current, completed(current, size, kind=kind))


@asynccontextmanager
async def both(stores: Kind) -> AsyncIterator[tuple[TaskStore, TaskStore, tuple[Replica, ...]]]:
    """Yields the task stores of two replicas, and the replicas."""
    async with joined(stores, 2) as replicas:
        here, there = (one.tasks(LIMITS) for one in replicas)
        yield here, there, tuple(replicas)


class TestTaskStore:
    async def test_results_of_removed_tasks_do_not_count_for_their_client(self, stores: Kind) -> None:
        async with both(stores) as (here, _there, _):
            await here.create(task("stays", "ada"))
            for id_ in ("first", "second"):
                await create_completed(here, id_, 4_000, "ada")
                await here.forget(id_)

    async def test_a_task_is_found_by_every_replica(self, stores: Kind) -> None:
        async with both(stores) as (here, there, _):
            record = replace(task("t", "ada", "ada"), questions={"q": {"method": "m"}}, scopes=frozenset({"read"}))
            assert await here.create(record)
            assert [await one.get("t") for one in (here, there)] == [record, record]
            assert await there.get("u") is None

    async def test_only_one_of_two_concurrent_replacements_succeeds(self, stores: Kind) -> None:
        async with both(stores) as (here, there, _):
            await here.create(task("t"))
            before = [await one.get("t") for one in (here, there)]
            replaced = [
                await one.replace(was, replace(was, message=text, revision=1))
                for one, was, text in zip((here, there), before, "ab", strict=True)
                if was is not None
            ]
            assert replaced == [True, False]
            now = await there.get("t")
            assert now is not None
            assert (now.message, now.revision) == ("a", 1)
            assert await there.replace(now, replace(now, message="c", revision=2))

    async def test_a_removed_task_is_unknown_at_every_replica(self, stores: Kind) -> None:
        async with both(stores) as (here, there, _):
            await here.create(task("t"))
            before = await here.get("t")
            await there.forget("t")
            await there.forget("t")
            assert before is not None
            assert [await here.get("t"), await here.replace(before, completed(before, 1))] == [None, False]

    async def test_tasks_have_a_total_limit_and_a_limit_per_client(self, stores: Kind) -> None:
        async with both(stores) as (here, there, _):
            made = [await one.create(task(str(n), "ada")) for n, one in enumerate((here, there, here, there))]
            assert made == [True, True, True, False]
            assert [await there.create(task(id_, id_)) for id_ in "uv"] == [True, False]
            await here.forget("u")
            assert await here.create(task("v", "v"))

    async def test_an_expired_task_is_unknown_and_makes_room(self, stores: Kind) -> None:
        async with both(stores) as (here, there, replicas):
            for number in range(3):
                await create_completed(here, str(number), 1_000, "ada" if number else "bob")
            await there.create(task("late", "ada", "ada"))
            await stores.let_pass(61)
            await rest(*replicas)
            assert [await there.get(id_) for id_ in ("0", "1", "late")] == [None] * 3
            assert await there.list_by_owner("ada") == []

    async def test_tasks_of_a_principal_are_listed_oldest_first(self, stores: Kind) -> None:
        async with both(stores) as (here, there, _):
            for one, id_, principal in (
                (here, "c", "ada"),
                (there, "a", "ada"),
                (here, "b", "bob"),
                (here, "d", None),
            ):
                await one.create(task(id_, "", principal))
            for one in (here, there):
                assert [found.id for found in await one.list_by_owner("ada")] == ["c", "a"]
            await there.forget("c")
            assert [found.id for found in await here.list_by_owner("ada")] == ["a"]
            assert await here.list_by_owner("eve") == []

    async def test_a_changed_task_wakes_listeners_at_every_replica(self, stores: Kind) -> None:
        async with both(stores) as (here, there, replicas):
            await here.create(task("t"))
            woken: list[str] = []
            stops = [
                one.listen("t", lambda name=name: woken.append(name)) for one, name in ((here, "a"), (there, "b"))
            ]
            again = there.listen("t", lambda: woken.append("c"))
            await rest(*replicas)
            before = await there.get("t")
            assert before is not None
            await there.replace(before, replace(before, message="m", revision=1))
            await rest(*replicas)
            assert sorted(woken) == ["a", "b", "c"]
            stops[0]()
            again()
            await here.forget("t")
            await rest(*replicas)
            assert sorted(woken) == ["a", "b", "b", "c"]
            stops[1]()

    async def test_an_expired_task_wakes_its_listeners(self, stores: Kind) -> None:
        async with both(stores) as (here, there, replicas):
            await here.create(task("t"))
            woken: list[str] = []
            stops = [
                one.listen("t", lambda name=name: woken.append(name)) for one, name in ((here, "a"), (there, "b"))
            ]
            await rest(*replicas)
            await stores.let_pass(61)
            await rest(*replicas)
            assert {*woken} == {"a", "b"}
            for stop in stops:
                stop()

    async def test_a_single_client_may_use_the_whole_size_limit(self, stores: Kind) -> None:
        async with both(stores) as (here, there, _):
            await create_completed(here, "a", 9_000)
            with pytest.raises(OverflowError):
                await create_completed(there, "b", 9_000)
            left = await here.get("b")
            assert left is not None
            assert left.status == "working"

    async def test_one_of_several_clients_may_use_half_of_what_is_left(self, stores: Kind) -> None:
        async with both(stores) as (here, there, _):
            await create_completed(here, "a", 4_000, "ada")
            with pytest.raises(OverflowError):
                await create_completed(there, "b", 4_000, "ada")
            await create_completed(there, "c", 2_900, "bob")

    async def test_large_errors_count_and_small_ones_always_fit(self, stores: Kind) -> None:
        async with both(stores) as (here, there, _):
            await create_completed(here, "a", 9_900, kind="error")
            with pytest.raises(OverflowError):
                await create_completed(there, "b", 2 * SMALL_BYTES, kind="error")
            await create_completed(there, "c", SMALL_BYTES // 2, kind="error")

    async def test_a_removed_task_makes_room(self, stores: Kind) -> None:
        async with both(stores) as (here, there, _):
            await create_completed(here, "a", 4_000, "ada")
            await there.forget("a")
            await create_completed(there, "b", 4_000, "ada")

    async def test_expired_results_make_room_at_once(self, stores: Kind) -> None:
        async with both(stores) as (here, there, replicas):
            await here.create(replace(task("late"), seconds=600.0))
            await create_completed(here, "a", 9_000)
            await stores.let_pass(61)
            await rest(*replicas)
            before = await there.get("late")
            assert before is not None
            assert await there.replace(before, completed(before, 9_000))


async def test_a_removed_task_takes_no_memory() -> None:
    store = MemoryTasks(LIMITS)
    await create_completed(store, "a", 100)
    await store.forget("a")
    assert len(store) == 0
    store.close()

"""Tasks in memory: what is kept of whom, and for how long."""

from dataclasses import replace

import pytest

from shared.contracts import TaskLimits, TaskRecord
from shared.stores.memory_tasks import SMALL_BYTES, MemoryTasks


def task(id_: str, client: str = "") -> TaskRecord:
    return TaskRecord(id_, "extension", None, client, 0.0, 0.0, 60.0)


async def ended(store: MemoryTasks, id_: str, size: int, client: str = "", *, kind: str = "result") -> None:
    """A task that has come to so much."""
    before = task(id_, client)
    await store.create(before)
    outcome = {kind: "a" * size}
    await store.replace(before, replace(before, status="completed", outcome=outcome, revision=1))


@pytest.fixture
async def store():
    store = MemoryTasks(TaskLimits(result_bytes=10_000))
    yield store
    store.close()


async def test_who_is_alone_has_room_for_all_results(store: MemoryTasks) -> None:
    await ended(store, "a", 9_000)
    with pytest.raises(OverflowError):
        await ended(store, "b", 9_000)


async def test_one_of_several_leaves_as_much_as_it_has(store: MemoryTasks) -> None:
    await ended(store, "a", 4_000, "ada")
    with pytest.raises(OverflowError):
        await ended(store, "b", 4_000, "ada")
    await ended(store, "c", 2_900, "bob")


async def test_errors_count_and_small_ones_have_room_always(store: MemoryTasks) -> None:
    await ended(store, "a", 9_900, kind="error")
    with pytest.raises(OverflowError):
        await ended(store, "b", 2 * SMALL_BYTES, kind="error")
    await ended(store, "c", SMALL_BYTES // 2, kind="error")


async def test_what_is_forgotten_makes_room(store: MemoryTasks) -> None:
    await ended(store, "a", 4_000, "ada")
    await store.forget("a")
    await ended(store, "b", 4_000, "ada")
    assert len(store) == 1

"""Calls that wait while large results are unsent."""

import asyncio

import pytest

from shared.server.dispatch.room import Room
from tests.quiet import quiet


def test_each_client_may_take_half_of_the_rest() -> None:
    room = Room(100)
    room.add("a", 50)
    assert room.is_free("a")
    room.add("a", 1)
    assert not room.is_free("a")
    room.add("b", 30)
    assert not room.is_free("b")


def test_a_client_without_results_never_waits() -> None:
    room = Room(100)
    room.add("a", 1_000)
    assert room.is_free("b")
    assert not room.is_free("a")


class Calls:
    """Waiting calls, and those that have begun."""

    def __init__(self, room: Room, size: int) -> None:
        self.room = room
        self.size = size
        self.begun: list[int] = []

    async def call(self, number: int, client: str = "a") -> None:
        await self.room.wait(client)
        self.begun.append(number)
        self.room.add(client, self.size)


async def test_calls_begin_in_order_while_there_is_room() -> None:
    calls = Calls(room := Room(100), 20)
    room.add("a", 60)
    tasks = [asyncio.create_task(calls.call(number)) for number in range(5)]
    await quiet()
    assert calls.begun == []
    room.remove("a", 60)
    await quiet()
    assert calls.begun == [0, 1, 2]
    room.remove("a", 20)
    await quiet()
    assert calls.begun == [0, 1, 2, 3]
    room.remove("a", 20)
    await asyncio.gather(*tasks)


async def test_calls_with_small_results_all_begin() -> None:
    calls = Calls(room := Room(100), 0)
    room.add("a", 60)
    tasks = [asyncio.create_task(calls.call(number)) for number in range(5)]
    await quiet()
    room.remove("a", 60)
    await quiet()
    assert calls.begun == [0, 1, 2, 3, 4]
    await asyncio.gather(*tasks)


async def test_room_released_by_one_client_is_available_to_others() -> None:
    calls = Calls(room := Room(100), 0)
    room.add("a", 90)
    room.add("b", 20)
    task = asyncio.create_task(calls.call(1, "b"))
    await quiet()
    assert calls.begun == []
    room.remove("a", 90)
    await task


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_cancelled_call_gives_up_its_turn(is_late: bool) -> None:
    calls = Calls(room := Room(100), 60)
    room.add("a", 60)
    first, second = [asyncio.create_task(calls.call(number)) for number in range(2)]
    await quiet()
    if is_late:
        room.remove("a", 60)
        first.cancel()
    else:
        first.cancel()
        await quiet()
        room.remove("a", 60)
    await second
    assert calls.begun == [1]
    assert not room._waiting

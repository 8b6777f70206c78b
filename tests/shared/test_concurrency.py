"""Tasks of one owner, and what expires unless it is stopped: in order, with one timer for all."""

import asyncio

import anyio

from shared.concurrency import MAX_EXPIRED_AT_ONCE, ExpiryQueue, TaskSet, run_in_turns
from shared.steps import Steps
from tests.clock import forward

PATIENCE = 20.0
SOON = 0.01


async def test_steps_of_several_works_take_turns_and_leave_some_to_others() -> None:
    turns = list[str]()

    def work(name: str) -> Steps[str]:
        for _ in range(2):
            turns.append(name)
            yield
        turns.append(name)
        return name

    async def others() -> None:
        while True:
            turns.append(".")
            await asyncio.sleep(0)

    results = list[str]()

    async def run(name: str) -> None:
        results.append(await run_in_turns(work(name)))

    with anyio.move_on_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(others)
            async with anyio.create_task_group() as works:
                works.start_soon(run, "a")
                works.start_soon(run, "b")
            tasks.cancel_scope.cancel()
    assert results == ["a", "b"]
    # A small request may need that many turns.
    assert not [part for part in "".join(turns).strip(".").replace("...", " ").split() if len(part.strip(".")) > 1]


async def test_a_crew_ends_together() -> None:
    failed: list[BaseException] = []
    crew, ended = TaskSet(failed.append), list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")

    crew.start(work())
    crew.start(work())
    await asyncio.sleep(0)
    await crew.stop()
    await crew.stop()
    assert ended == ["work", "work"]
    assert not failed


async def test_who_leads_a_crew_is_told_of_a_failure() -> None:
    failed: list[BaseException] = []
    crew, error = TaskSet(failed.append), ValueError("no")

    async def work() -> None:
        raise error

    crew.start(work())
    await crew.finish(30)
    assert failed == [error]


async def test_a_crew_may_be_waited_for() -> None:
    done = asyncio.Event()
    crew = TaskSet(lambda _: None)

    async def work() -> None:
        done.set()

    await crew.finish(0)
    crew.start(work())
    await crew.finish(30)
    assert done.is_set()


class Expired(list[str]):
    """The keys that have expired, in order."""

    def __init__(self) -> None:
        self._more = anyio.Event()

    def append(self, key: str) -> None:
        super().append(key)
        self._more.set()

    async def wait_for(self, count: int) -> list[str]:
        with anyio.fail_after(PATIENCE):
            while len(self) < count:
                self._more = anyio.Event()
                await self._more.wait()
        return list(self)


async def test_they_expire_in_order_each_after_all_its_time_unless_they_are_stopped() -> None:
    expired = Expired()
    queue = ExpiryQueue(SOON, expired.append)
    for key in "abca":  # who is started anew has all its time again
        queue.start(key)
    queue.stop("c")
    queue.stop("unknown")
    assert await expired.wait_for(2) == ["b", "a"]
    assert not queue
    # It goes on after a time with nothing in it.
    queue.start("d")
    assert await expired.wait_for(3) == ["b", "a", "d"]


async def test_what_expires_may_stop_what_would_lapse_next() -> None:
    expired = Expired()

    def expire(key: str) -> None:
        queue.stop("b")
        expired.append(key)

    queue = ExpiryQueue(SOON, expire)
    for key in "abc":
        queue.start(key)
    assert await expired.wait_for(2) == ["a", "c"]


async def test_a_burst_lets_others_have_their_turn() -> None:
    expired, seen = Expired(), list[int]()
    loop = asyncio.get_running_loop()

    def expire(key: str) -> None:
        expired.append(key)
        if len(expired) == 1:
            loop.call_soon(lambda: seen.append(len(expired)))

    queue = ExpiryQueue(3_600, expire)
    for number in range(3 * MAX_EXPIRED_AT_ONCE + 1):
        queue.start(str(number))
    # However long that took, all of them are due by now.
    forward(2 * 3_600)
    await expired.wait_for(3 * MAX_EXPIRED_AT_ONCE + 1)
    assert seen == [MAX_EXPIRED_AT_ONCE]


async def test_an_entry_may_be_made_and_taken_out_by_hand() -> None:
    expired = Expired()
    queue = ExpiryQueue(SOON, expired.append)
    for key in "ab":
        queue[key] = asyncio.get_running_loop().time() + queue.seconds
    queue.arm()
    del queue["a"]
    assert await expired.wait_for(1) == ["b"]
    assert queue.timer is None


async def test_it_knows_how_long_each_has_waited() -> None:
    queue = ExpiryQueue(60, str)
    queue.start("a")
    forward(20)
    assert 20 <= queue.elapsed("a") < 40
    assert queue.elapsed("b") == 0
    queue.close()


async def test_closed_it_has_no_timer() -> None:
    queue = ExpiryQueue(PATIENCE, str)
    queue.start("a")
    timer = queue.timer
    queue.close()
    queue.close()
    assert timer is not None
    assert (timer.cancelled(), queue.timer) == (True, None)

"""What nobody is done with expires in time: in order, one timer for all."""

import asyncio

import anyio

from shared.kit.expiry import AT_ONCE, ExpiryQueue
from tests.clock import forward

PATIENCE = 20.0
SOON = 0.01


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


async def test_what_was_started_first_expires_first() -> None:
    queue, expired = ExpiryQueue(SOON), Expired()
    for key in "abc":
        queue.start(key, expired.append)
    assert await expired.wait_for(3) == ["a", "b", "c"]
    assert not queue


async def test_what_is_started_anew_has_all_its_time_again() -> None:
    queue, expired = ExpiryQueue(SOON), Expired()
    for key in "aba":
        queue.start(key, expired.append)
    assert await expired.wait_for(2) == ["b", "a"]


async def test_what_is_stopped_does_not_expire() -> None:
    queue, expired = ExpiryQueue(SOON), Expired()
    for key in "ab":
        queue.start(key, expired.append)
    queue.stop("a")
    queue.stop("unknown")
    assert await expired.wait_for(1) == ["b"]
    assert not queue


async def test_what_expires_may_stop_what_would_lapse_next() -> None:
    queue, expired = ExpiryQueue(SOON), Expired()
    queue.start("a", lambda _: queue.stop("b"))
    queue.start("b", expired.append)
    queue.start("c", expired.append)
    assert await expired.wait_for(1) == ["c"]


async def test_it_goes_on_after_a_time_with_nothing_in_it() -> None:
    queue, expired = ExpiryQueue(SOON), Expired()
    queue.start("a", expired.append)
    await expired.wait_for(1)
    queue.start("b", expired.append)
    assert await expired.wait_for(2) == ["a", "b"]


async def test_a_burst_lets_others_have_their_turn() -> None:
    queue, expired = ExpiryQueue(3_600), Expired()
    loop, seen = asyncio.get_running_loop(), list[int]()

    def first(key: str) -> None:
        expired.append(key)
        loop.call_soon(lambda: seen.append(len(expired)))

    queue.start("first", first)
    for number in range(3 * AT_ONCE):
        queue.start(str(number), expired.append)
    # However long that took, all of them are due by now.
    forward(2 * 3_600)
    await expired.wait_for(3 * AT_ONCE + 1)
    assert seen == [AT_ONCE]


async def test_an_entry_may_be_made_and_taken_out_by_hand() -> None:
    queue, expired = ExpiryQueue(SOON), Expired()
    for key in "ab":
        queue[key] = asyncio.get_running_loop().time() + queue.seconds, expired.append
    queue.arm()
    del queue["a"]
    assert await expired.wait_for(1) == ["b"]
    assert queue.timer is None


async def test_it_knows_how_long_each_has_waited() -> None:
    queue = ExpiryQueue(60)
    queue.start("a", str)
    forward(20)
    assert 20 <= queue.waited("a") < 40
    assert queue.waited("b") == 0
    queue.close()


async def test_closed_it_has_no_timer() -> None:
    queue = ExpiryQueue(PATIENCE)
    queue.start("a", str)
    timer = queue.timer
    queue.close()
    queue.close()
    assert timer is not None
    assert (timer.cancelled(), queue.timer) == (True, None)

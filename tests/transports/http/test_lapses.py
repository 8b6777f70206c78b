"""What nobody asks for lapses in time: in order, one timer for all."""

import asyncio

import anyio

from shared.transports.http.lapses import AT_ONCE, Lapses
from tests.clock import forward
from tests.transports.http.http_wire import PATIENCE

SOON = 0.01


class Lapsed(list[str]):
    """The keys that have lapsed, in order."""

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


async def test_what_was_started_first_lapses_first() -> None:
    lapses, lapsed = Lapses(SOON), Lapsed()
    for key in "abc":
        lapses.start(key, lapsed.append)
    assert await lapsed.wait_for(3) == ["a", "b", "c"]
    assert not lapses


async def test_what_is_started_anew_has_all_its_time_again() -> None:
    lapses, lapsed = Lapses(SOON), Lapsed()
    for key in "aba":
        lapses.start(key, lapsed.append)
    assert await lapsed.wait_for(2) == ["b", "a"]


async def test_what_is_stopped_does_not_lapse() -> None:
    lapses, lapsed = Lapses(SOON), Lapsed()
    for key in "ab":
        lapses.start(key, lapsed.append)
    lapses.stop("a")
    lapses.stop("unknown")
    assert await lapsed.wait_for(1) == ["b"]
    assert not lapses


async def test_what_lapses_may_stop_what_would_lapse_next() -> None:
    lapses, lapsed = Lapses(SOON), Lapsed()
    lapses.start("a", lambda _: lapses.stop("b"))
    lapses.start("b", lapsed.append)
    lapses.start("c", lapsed.append)
    assert await lapsed.wait_for(1) == ["c"]


async def test_it_goes_on_after_a_time_with_nothing_in_it() -> None:
    lapses, lapsed = Lapses(SOON), Lapsed()
    lapses.start("a", lapsed.append)
    await lapsed.wait_for(1)
    lapses.start("b", lapsed.append)
    assert await lapsed.wait_for(2) == ["a", "b"]


async def test_a_burst_lets_others_have_their_turn() -> None:
    lapses, lapsed = Lapses(3_600), Lapsed()
    loop, seen = asyncio.get_running_loop(), list[int]()

    def first(key: str) -> None:
        lapsed.append(key)
        loop.call_soon(lambda: seen.append(len(lapsed)))

    lapses.start("first", first)
    for number in range(3 * AT_ONCE):
        lapses.start(str(number), lapsed.append)
    # However long that took, all of them are due by now.
    forward(2 * 3_600)
    await lapsed.wait_for(3 * AT_ONCE + 1)
    assert seen == [AT_ONCE]

"""Item H16, as far as loading goes: many loads at once, and some of them poisonous."""

import asyncio

import anyio
import pytest

from servers.fetch.errors import FetchError
from servers.fetch.load.limits import HOSTS, LITTLE, QUEUE, ByteBudget, Pauses, Slots
from servers.fetch.load.stopwatch import Stopwatch
from tests.clock import forward
from tests.servers.fetch.loaders import opened_loader, refused
from tests.servers.fetch.packing import bomb
from tests.servers.fetch.sites import Asked, answer, opened_site


class Gate:
    """A route that answers when it is opened, and counts those that wait at it."""

    def __init__(self) -> None:
        self.open = anyio.Event()
        self.now = 0
        self.most = 0

    async def __call__(self, _: Asked, out: asyncio.StreamWriter) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await self.open.wait()
        # Counted down before the answer: the next request comes as soon as that is read.
        self.now -= 1
        out.write(answer("x"))

    async def until(self, count: int) -> None:
        with anyio.fail_after(30):
            while self.now < count:
                await asyncio.sleep(0)


async def test_h16_no_more_than_the_limit_are_at_work_on_one_host() -> None:
    gate = Gate()
    async with (
        opened_site({"*": gate}) as site,
        opened_loader(max_per_host=3, ignore_robots=True) as loader,
        anyio.create_task_group() as group,
    ):
        for n in range(10):
            group.start_soon(loader.load, site.url(f"/{n}"))
        await gate.until(3)
        gate.open.set()
    assert (gate.most, len(site.asked)) == (3, 10)


async def test_h16_a_slow_host_does_not_keep_the_others_waiting() -> None:
    gate = Gate()
    async with (
        opened_site({"*": gate, "/quick": answer("quick")}) as site,
        opened_loader(["a.example:*", "b.example:*"], max_concurrent=3, max_per_host=2) as loader,
        anyio.create_task_group() as group,
    ):
        for n in range(6):
            group.start_soon(loader.load, site.url(f"/{n}", "a.example"))
        await gate.until(2)
        assert (await loader.load(site.url("/quick", "b.example"))).body == b"quick"
        gate.open.set()


async def test_h16_beyond_a_number_that_wait_the_next_is_refused() -> None:
    gate = Gate()
    async with (
        opened_site({"*": gate}) as site,
        opened_loader(max_concurrent=1, ignore_robots=True) as loader,
        anyio.create_task_group() as group,
    ):
        for n in range(1 + QUEUE):
            group.start_soon(loader.load, site.url(f"/{n}"))
        await gate.until(1)
        assert (await refused(loader, site.url("/more"))).code == "busy"
        gate.open.set()
    assert len(site.asked) == 1 + QUEUE


async def test_h16_waiting_for_a_place_is_part_of_the_time() -> None:
    gate = Gate()
    async with (
        opened_site({"*": gate}) as site,
        opened_loader(max_per_host=1, timeout=0.2, ignore_robots=True) as loader,
    ):
        loads = await asyncio.gather(*(loader.load(site.url(f"/{n}")) for n in range(3)), return_exceptions=True)
    assert [one.code for one in loads if isinstance(one, FetchError)] == ["timeout"] * 3


async def test_waiting_for_a_place_is_no_time_of_the_site() -> None:
    gate, budget, times = Gate(), ByteBudget(LITTLE), (Stopwatch(), Stopwatch())
    async with (
        opened_site({"*": gate}) as site,
        opened_loader(max_per_host=1, ignore_robots=True) as loader,
        anyio.create_task_group() as group,
    ):

        async def load(time: Stopwatch) -> None:
            with budget.share(time) as share:
                await loader.load(site.url("/"), refresh=True, share=share)

        for time in times:
            group.start_soon(load, time)
        await gate.until(1)
        forward(6)
        gate.open.set()
    assert times[0].seconds > 6
    assert times[1].seconds < 6


@pytest.mark.slow
async def test_h16_poisonous_pages_leave_the_others_alone() -> None:
    async def endless(_: Asked, out: asyncio.StreamWriter) -> None:
        out.write(b"HTTP/1.1 200 X\r\n\r\n")
        while not out.is_closing():
            out.write(bytes(65_536))
            await out.drain()

    routes = {"*": answer("good"), "/bomb": answer(bomb("gzip", 16), content_encoding="gzip"), "/endless": endless}
    paths = ["/bomb", "/endless", *(f"/{n}" for n in range(48))]
    async with opened_site(routes) as site, opened_loader(max_bytes=1_000_000) as loader:
        loads = await asyncio.gather(*(loader.load(site.url(path)) for path in paths), return_exceptions=True)
    assert [one.code for one in loads if isinstance(one, FetchError)] == ["too_large", "too_large"]


async def test_places_are_forgotten_with_their_hosts() -> None:
    slots = Slots(2, 1)
    async with slots.held("a.example"), slots.held("b.example"):
        assert set(slots._hosts) == {"a.example", "b.example"}
    assert slots._hosts == {}


def test_hosts_that_asked_to_wait_are_bounded() -> None:
    pauses = Pauses()
    for n in range(HOSTS + 1):
        pauses.add(f"{n}.example", 429, 60)
    pauses.check("0.example")
    with pytest.raises(FetchError, match=r"1\.example answered 429 before"):
        pauses.check("1.example")


def test_a_pause_is_an_hour_at_most() -> None:
    pauses = Pauses()
    pauses.add("a.example", 503, 1e9)
    with pytest.raises(FetchError) as caught:
        pauses.check("a.example")
    assert caught.value.answered is not None
    assert caught.value.answered.retry_after == 3_600

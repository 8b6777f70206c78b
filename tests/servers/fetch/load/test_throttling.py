"""The byte budget of a process, the slots of each host, and pauses after Retry-After."""

import asyncio

import anyio
import pytest

from servers.fetch.errors import FetchError
from servers.fetch.load.throttling import (
    FREE_BYTES,
    MAX_HOSTS,
    MAX_QUEUE_FACTOR,
    ByteBudget,
    Pauses,
    Share,
    Stopwatch,
)
from tests.clock import forward
from tests.servers.fetch.loaders import opened_loader, refused
from tests.servers.fetch.packing import bomb
from tests.servers.fetch.sites import Gate, ReceivedRequest, answer, opened_site

LARGE = 2 * FREE_BYTES


async def is_granted(share: Share, size: int = LARGE) -> bool:
    """Returns True if the bytes are granted without waiting."""
    with anyio.move_on_after(0.05):
        await share.ensure(size, size)
        return True
    return False


async def test_a_share_beyond_the_budget_waits_for_free_bytes() -> None:
    budget = ByteBudget(2 * LARGE)
    with budget.share() as first, budget.share() as second, budget.share() as third:
        assert await is_granted(first)
        assert await is_granted(second)
        assert not await is_granted(third)
        first.shrink_to(0)
        assert await is_granted(third)
        assert budget.in_use == 2 * LARGE
    assert budget.in_use == 0


async def test_a_small_share_never_waits() -> None:
    budget = ByteBudget(LARGE)
    with budget.share() as large, budget.share() as small:
        assert await is_granted(large)
        assert await is_granted(small, FREE_BYTES)
        assert not await is_granted(small, FREE_BYTES + 1)


async def test_a_single_page_may_exceed_the_budget() -> None:
    budget = ByteBudget(FREE_BYTES)
    with budget.share() as share:
        assert await is_granted(share, 100 * FREE_BYTES)
        assert await is_granted(share, 90 * FREE_BYTES)


async def test_shrinking_a_share_frees_its_bytes() -> None:
    budget = ByteBudget(2 * LARGE)
    with budget.share() as first, budget.share() as second:
        await first.ensure(FREE_BYTES + 1, 2 * LARGE)
        assert not await is_granted(second)
        first.shrink_to(LARGE)
        assert await is_granted(second)


async def test_waiting_shares_are_served_in_order() -> None:
    budget, came = ByteBudget(2 * LARGE), []

    async def wait(name: str, size: int) -> None:
        with budget.share() as share:
            await share.ensure(size, size)
            came.append(name)

    async with anyio.create_task_group() as tasks:
        with budget.share() as share:
            await share.ensure(LARGE, LARGE)
            for name, size in (("large", 2 * LARGE), ("small", LARGE)):
                tasks.start_soon(wait, name, size)
                await anyio.wait_all_tasks_blocked()
            assert came == []
    assert came == ["large", "small"]


async def test_a_share_that_stopped_waiting_does_not_block_the_next() -> None:
    budget = ByteBudget(2 * LARGE)
    with budget.share() as first, budget.share() as second, budget.share() as third:
        await first.ensure(LARGE, LARGE)
        assert not await is_granted(second, 2 * LARGE)
        assert await is_granted(third)
    assert budget.in_use == 0


async def test_cancelling_a_large_waiter_serves_a_smaller_one_behind_it() -> None:
    budget = ByteBudget(2 * LARGE)
    with budget.share() as first, budget.share() as second:
        await first.ensure(LARGE, LARGE)
        impatient = asyncio.create_task(budget.reserve(2 * LARGE))
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(20):
            waiting = asyncio.create_task(second.ensure(LARGE, LARGE))
            await anyio.wait_all_tasks_blocked()
            assert budget.in_use == LARGE
            impatient.cancel()
            await asyncio.wait([waiting, impatient])
        assert budget.in_use == 2 * LARGE


async def test_waiting_for_bytes_does_not_count_as_site_time() -> None:
    budget = ByteBudget(LARGE)
    with budget.share() as first, budget.share() as second, anyio.CancelScope() as second.limit:
        await first.ensure(LARGE, LARGE)
        second.limit.deadline = anyio.current_time() + 60
        with second.site.measure():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(second.ensure, LARGE, LARGE)
                await anyio.wait_all_tasks_blocked()
                assert second.limit.deadline == float("inf")
                forward(90)
                first.shrink_to(0)
        assert 59 < second.limit.deadline - anyio.current_time() <= 60
        assert second.site.seconds < 60


async def test_large_pages_are_loaded_one_at_a_time() -> None:
    pages = {f"/{number}": answer("x" * LARGE, content_type="text/plain") for number in range(4)}
    budget, most = ByteBudget(LARGE + FREE_BYTES), []
    async with opened_site(pages) as site, opened_loader(timeout=5) as loader:

        async def load(number: int) -> None:
            with budget.share() as share:
                page = await loader.load(site.url(f"/{number}"), share=share)
                most.append(budget.in_use)
                assert len(page.body) == LARGE
                # Waiting extends the deadline.
                assert share.limit is not None

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(load, number)
    assert most == [LARGE] * 4
    assert budget.in_use == 0


async def test_a_failed_load_frees_its_bytes() -> None:
    large = answer("x" * LARGE, content_type="text/plain", content_encoding="gzip")
    budget = ByteBudget(LARGE)
    async with opened_site({"/": large}) as site, opened_loader() as loader:
        with pytest.raises(FetchError), budget.share() as share:
            await loader.load(site.url("/"), share=share)
    assert budget.in_use == 0


# Many loads at once, some of them of hostile pages


async def test_max_per_host_limits_concurrent_loads() -> None:
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
    assert (gate.most, len(site.requests)) == (3, 10)


async def test_a_slow_host_does_not_delay_other_hosts() -> None:
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


async def test_a_load_beyond_the_queue_limit_is_refused() -> None:
    gate = Gate()
    async with (
        opened_site({"*": gate}) as site,
        opened_loader(max_concurrent=1, ignore_robots=True) as loader,
        anyio.create_task_group() as group,
    ):
        for n in range(1 + MAX_QUEUE_FACTOR):
            group.start_soon(loader.load, site.url(f"/{n}"))
        await gate.until(1)
        assert (await refused(loader, site.url("/more"))).code == "busy"
        gate.open.set()
    assert len(site.requests) == 1 + MAX_QUEUE_FACTOR


async def test_waiting_for_a_slot_counts_towards_the_timeout() -> None:
    gate = Gate()
    async with (
        opened_site({"*": gate}) as site,
        opened_loader(max_per_host=1, timeout=0.2, ignore_robots=True) as loader,
    ):
        loads = await asyncio.gather(*(loader.load(site.url(f"/{n}")) for n in range(3)), return_exceptions=True)
    assert [one.code for one in loads if isinstance(one, FetchError)] == ["timeout"] * 3


async def test_waiting_for_a_slot_does_not_count_as_site_time() -> None:
    gate, budget, times = Gate(), ByteBudget(FREE_BYTES), (Stopwatch(), Stopwatch())
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
async def test_hostile_pages_do_not_affect_other_loads() -> None:
    async def endless(_: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        out.write(b"HTTP/1.1 200 X\r\n\r\n")
        while not out.is_closing():
            out.write(bytes(65_536))
            await out.drain()

    routes = {"*": answer("good"), "/bomb": answer(bomb("gzip", 16), content_encoding="gzip"), "/endless": endless}
    paths = ["/bomb", "/endless", *(f"/{n}" for n in range(48))]
    async with opened_site(routes) as site, opened_loader(max_bytes=1_000_000) as loader:
        loads = await asyncio.gather(*(loader.load(site.url(path)) for path in paths), return_exceptions=True)
    assert [one.code for one in loads if isinstance(one, FetchError)] == ["too_large", "too_large"]


def test_the_number_of_paused_hosts_is_bounded() -> None:
    pauses = Pauses()
    for n in range(MAX_HOSTS + 1):
        pauses.add(f"{n}.example", 429, 60)
    pauses.check("0.example")
    with pytest.raises(FetchError, match=r"1\.example answered 429 earlier"):
        pauses.check("1.example")


def test_a_pause_lasts_at_most_an_hour() -> None:
    pauses = Pauses()
    pauses.add("a.example", 503, 1e9)
    with pytest.raises(FetchError) as caught:
        pauses.check("a.example")
    assert caught.value.response is not None
    assert caught.value.response.retry_after == 3_600

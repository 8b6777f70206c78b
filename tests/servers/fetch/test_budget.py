"""One budget for all large pages that a process holds."""

import anyio
import pytest

from servers.fetch.errors import FetchError
from servers.fetch.load.limits import LITTLE, ByteBudget, Share
from tests.checks.benchmarks.fetch_site import Site, reply
from tests.clock import forward
from tests.servers.fetch.loaders import opened_loader

LARGE = 2 * LITTLE


async def taken(share: Share, size: int = LARGE) -> bool:
    """Whether there is room at once."""
    with anyio.move_on_after(0.05):
        await share.need(size, size)
        return True
    return False


async def test_what_does_not_fit_waits_until_there_is_room() -> None:
    budget = ByteBudget(2 * LARGE)
    with budget.share() as first, budget.share() as second, budget.share() as third:
        assert await taken(first)
        assert await taken(second)
        assert not await taken(third)
        first.keep(0)
        assert await taken(third)
        assert budget.held == 2 * LARGE
    assert budget.held == 0


async def test_a_little_is_taken_without_waiting() -> None:
    budget = ByteBudget(LARGE)
    with budget.share() as large, budget.share() as small:
        assert await taken(large)
        assert await taken(small, LITTLE)
        assert not await taken(small, LITTLE + 1)


async def test_one_page_alone_may_have_more() -> None:
    budget = ByteBudget(LITTLE)
    with budget.share() as share:
        assert await taken(share, 100 * LITTLE)
        assert await taken(share, 90 * LITTLE)


async def test_what_was_not_needed_is_given_back() -> None:
    budget = ByteBudget(2 * LARGE)
    with budget.share() as first, budget.share() as second:
        await first.need(LITTLE + 1, 2 * LARGE)
        assert not await taken(second)
        first.keep(LARGE)
        assert await taken(second)


async def test_pages_come_in_the_order_in_which_they_waited() -> None:
    budget, came = ByteBudget(2 * LARGE), []

    async def wait(name: str, size: int) -> None:
        with budget.share() as share:
            await share.need(size, size)
            came.append(name)

    async with anyio.create_task_group() as tasks:
        with budget.share() as share:
            await share.need(LARGE, LARGE)
            for name, size in (("large", 2 * LARGE), ("small", LARGE)):
                tasks.start_soon(wait, name, size)
                await anyio.wait_all_tasks_blocked()
            assert came == []
    assert came == ["large", "small"]


async def test_one_that_is_given_up_lets_the_next_by() -> None:
    budget = ByteBudget(2 * LARGE)
    with budget.share() as first, budget.share() as second, budget.share() as third:
        await first.need(LARGE, LARGE)
        assert not await taken(second, 2 * LARGE)
        assert await taken(third)
    assert budget.held == 0


async def test_waiting_for_room_is_no_time_of_the_site() -> None:
    budget = ByteBudget(LARGE)
    with budget.share() as first, budget.share() as second, anyio.CancelScope() as second.limit:
        await first.need(LARGE, LARGE)
        second.limit.deadline = anyio.current_time() + 60
        with second.site.running():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(second.need, LARGE, LARGE)
                await anyio.wait_all_tasks_blocked()
                assert second.limit.deadline == float("inf")
                forward(90)
                first.keep(0)
        assert 59 < second.limit.deadline - anyio.current_time() <= 60
        assert second.site.seconds < 60


async def test_large_pages_are_loaded_one_after_the_other() -> None:
    pages = {f"/{number}": reply("x" * LARGE, "text/plain") for number in range(4)}
    budget, most = ByteBudget(LARGE + LITTLE), []
    async with Site(pages) as site, opened_loader(timeout=5) as loader:

        async def load(number: int) -> None:
            with budget.share() as share:
                page = await loader.load(site.url(f"/{number}"), share=share)
                most.append(budget.held)
                assert len(page.body) == LARGE

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(load, number)
    assert most == [LARGE] * 4
    assert budget.held == 0


async def test_a_page_that_fails_gives_back_what_it_had() -> None:
    large = reply("x" * LARGE, "text/plain", Content_Encoding="gzip")
    budget = ByteBudget(LARGE)
    async with Site({"/": large}) as site, opened_loader() as loader:
        with pytest.raises(FetchError), budget.share() as share:
            await loader.load(site.url("/"), share=share)
    assert budget.held == 0

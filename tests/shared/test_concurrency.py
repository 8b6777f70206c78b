"""Tasks of one owner."""

import asyncio

from shared.concurrency import Crew


async def test_a_crew_ends_together() -> None:
    failed: list[BaseException] = []
    crew, ended = Crew(failed.append), list[str]()

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
    crew, error = Crew(failed.append), ValueError("no")

    async def work() -> None:
        raise error

    crew.start(work())
    await crew.finish(30)
    assert failed == [error]


async def test_a_crew_may_be_waited_for() -> None:
    done = asyncio.Event()
    crew = Crew(lambda _: None)

    async def work() -> None:
        done.set()

    await crew.finish(0)
    crew.start(work())
    await crew.finish(30)
    assert done.is_set()

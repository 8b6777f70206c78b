"""Waits until all other tasks are idle, without a clock."""

import asyncio


async def quiet() -> None:
    """Waits until every other task waits for an event that has not happened.

    anyio's `wait_all_tasks_blocked` polls every tenth of a second; this checks at every turn of the loop.
    """
    me, calm = asyncio.current_task(), 0
    while calm < 3:  # a callback may be about to wake a task
        await asyncio.sleep(0)
        calm = calm + 1 if all(task is me or _waits(task) for task in asyncio.all_tasks()) else 0


def _waits(task: asyncio.Task[object]) -> bool:
    # asyncio has no public name for what a task waits for.
    awaited = getattr(task, "_fut_waiter", None)
    return awaited is not None and not awaited.done()

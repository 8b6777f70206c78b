"""One timer for all calls: each ends in its time, and a call that waits for the user has its clock stopped."""

import asyncio
import math

import anyio
from anyio import CancelScope

from shared.server.deadlines import Deadlines
from tests.clock import forward
from tests.quiet import quiet

PATIENCE = 20.0
SOON = 0.01
LONG = 60.0


def now() -> float:
    return asyncio.get_running_loop().time()


async def call(deadlines: Deadlines, at: float, ended: list[float]) -> None:
    """Holds on until it is cancelled, as a call does."""
    with CancelScope() as scope:
        deadlines[scope] = at
        if deadlines.timer is None:
            deadlines.arm()
        await anyio.sleep_forever()
    ended.append(at)


async def test_one_call_after_the_other_ends_in_its_time() -> None:
    deadlines, ended = Deadlines(), []
    began = now()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for number in (1, 2, 3):
                tasks.start_soon(call, deadlines, began + number * SOON, ended)
    assert ended == [began + number * SOON for number in (1, 2, 3)]
    assert now() >= began + 3 * SOON
    assert (dict(deadlines), deadlines.timer) == ({}, None)


async def test_a_call_that_begins_when_none_is_left_ends_too() -> None:
    deadlines, ended = Deadlines(), []
    with anyio.fail_after(PATIENCE):
        for _ in range(2):
            await call(deadlines, now() + SOON, ended)
    assert len(ended) == 2


async def test_a_clock_that_stands_does_not_run_out() -> None:
    deadlines, stood = Deadlines(), False
    with CancelScope() as scope:
        deadlines[scope] = now() + LONG
        deadlines.arm()
        for _ in range(2):
            with deadlines.paused(scope):
                with deadlines.paused(scope):
                    forward(2 * LONG)
                    await quiet()
                assert scope.deadline == math.inf
                forward(2 * LONG)
                await quiet()
                assert not scope.cancel_called
            assert 0 < scope.deadline - now() <= LONG
        forward(LONG)
        stood = True
        await anyio.sleep_forever()
    assert (stood, scope.cancelled_caught) == (True, True)


async def test_closed_it_has_no_timer() -> None:
    deadlines = Deadlines()
    deadlines[CancelScope()] = now() + PATIENCE
    deadlines.arm()
    timer = deadlines.timer
    deadlines.close()
    assert timer is not None
    assert (timer.cancelled(), deadlines.timer) == (True, None)

"""What befalls the replicas while clients are at work: every two seconds one is killed or stands still, and Redis is
restarted now and then."""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from tests.checks.replicas.cluster import Cluster, Replica

__all__ = ["Havoc"]

EVERY = 2.0
BEYOND = 1.0
"""Seconds that a replica stands still for after its lease has run out."""


class Havoc:
    """The things that are done, one at a time, and how often."""

    def __init__(self, cluster: Cluster) -> None:
        self.done: Counter[str] = Counter()
        self._cluster = cluster

    async def rage(self, seconds: float) -> None:
        """Does its work for so long; all replicas are there again when this returns."""
        redis_at = {int(seconds / EVERY) // 3: False, 2 * int(seconds / EVERY) // 3: True}
        async with anyio.create_task_group() as tasks:
            began = time.monotonic()
            for turn in range(int(seconds / EVERY)):
                await anyio.sleep_until(anyio.current_time() + max(0.0, began + turn * EVERY - time.monotonic()))
                if turn in redis_at:
                    tasks.start_soon(self._restart_redis, redis_at[turn])
                self._harm(self._cluster[turn % len(self._cluster.replicas)], turn, tasks)
            await anyio.sleep(max(0.0, began + seconds - time.monotonic()))
        await self._cluster.heal()

    def _harm(self, one: Replica, turn: int, tasks: TaskGroup) -> None:
        """What was harmed before and has not come back is left alone."""
        if one.is_stopped or not one.is_alive:
            self.done["left alone"] += 1
        elif turn % 2:
            one.stop()
            self.done["replicas that stood still"] += 1
            tasks.start_soon(self._go_on, one)
        else:
            one.kill()
            self.done["replicas killed"] += 1
            one.start()

    async def _go_on(self, one: Replica) -> None:
        await anyio.sleep(self._cluster.replicas.lease + BEYOND)
        one.go_on()

    async def _restart_redis(self, kill: bool) -> None:
        redis = self._cluster.redis
        await _in_thread(partial(redis.stop, kill=kill))
        await _in_thread(redis.start)
        self.done["Redis killed" if kill else "Redis stopped"] += 1


async def _in_thread(work: Callable[[], None]) -> None:
    await to_thread.run_sync(work)

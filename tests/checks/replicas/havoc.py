"""What befalls the replicas while clients are at work: every two seconds one is killed or stands still, as soon as
another one is ready, and Redis is restarted now and then."""

from collections import Counter
from collections.abc import Callable
from functools import partial

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from tests.checks.replicas.cluster import PATIENCE, Cluster, Replica

__all__ = ["Havoc"]

EVERY = 2.0
BEYOND = 1.0
"""Seconds that a replica stands still for after its lease has expired."""


class Havoc:
    """The things that are done, one at a time, and how often."""

    def __init__(self, cluster: Cluster) -> None:
        self.done: Counter[str] = Counter()
        self._cluster = cluster

    async def rage(self, turns: int) -> None:
        """Harms a replica so many times; all of them are there again when this returns."""
        redis_at = {turns // 3: False, 2 * turns // 3: True}
        async with anyio.create_task_group() as tasks:
            for turn in range(turns):
                if turn in redis_at:
                    tasks.start_soon(self._restart_redis, redis_at[turn])
                await self._harm(self._cluster[turn % len(self._cluster.replicas)], turn, tasks)
                await anyio.sleep(EVERY)
        await self._cluster.heal()

    async def _harm(self, one: Replica, turn: int, tasks: TaskGroup) -> None:
        """Kills or stops a replica, once it runs and another one is ready: a slow machine has time to start them."""
        with anyio.fail_after(2 * PATIENCE):
            while one.is_stopped or not await self._is_another_ready(one):
                await anyio.sleep(0.1)
        if turn % 2:
            one.stop()
            self.done["replicas that stood still"] += 1
            tasks.start_soon(self._go_on, one)
        else:
            one.kill()
            self.done["replicas killed"] += 1
            one.start()

    async def _is_another_ready(self, one: Replica) -> bool:
        replicas = self._cluster.replicas
        return any([(await replicas.readiness(other))[0] == 200 for other in replicas.all if other is not one])

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

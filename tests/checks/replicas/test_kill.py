"""Three replicas behind a proxy that sends each request to another one, many clients at work, and no mercy."""

from collections.abc import Callable
from pathlib import Path

import aiohttp
import anyio
import pytest

from tests.checks.replicas.busy import BusyClient
from tests.checks.replicas.cluster import Cluster, cluster
from tests.checks.replicas.conftest import Row
from tests.checks.replicas.figures import Figures
from tests.checks.replicas.havoc import Havoc

CLIENTS, SECONDS, LEASE = 300, 60.0, 2.0


@pytest.mark.timeout(240)
async def test_nothing_is_lost_while_replicas_are_killed(
    tmp_path: Path, record: Callable[[str, list[Row]], None]
) -> None:
    async with cluster(tmp_path, lease=LEASE) as three:
        figures, havoc = Figures(), Havoc(three)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True)) as http:
            try:
                await work(three, http, figures, havoc)
            finally:
                print(three.replicas.said()[-20_000:])
                done = [(name, f"{count:,}") for name, count in havoc.done.items()]
                title = f"{CLIENTS} clients of three replicas, for {SECONDS:g} seconds"
                record(title, [*done, *figures.rows()])


async def work(three: Cluster, http: aiohttp.ClientSession, figures: Figures, havoc: Havoc) -> None:
    """Has all clients at work, until what befalls the replicas is over."""
    busy = [BusyClient(http, three.url, f"client{number}", figures) for number in range(CLIENTS)]
    is_over = False
    async with anyio.create_task_group() as listening:
        async with anyio.create_task_group() as opening:
            for one in busy:
                opening.start_soon(one.open)
        for one in busy:
            listening.start_soon(one.client.listen)
        async with anyio.create_task_group() as working:
            for one in busy:
                working.start_soon(one.run, lambda: not is_over)
            await havoc.rage(SECONDS)
            is_over = True
        listening.cancel_scope.cancel()
    async with anyio.create_task_group() as ending:
        for one in busy:
            ending.start_soon(one.end)
    for one in busy:
        figures.counts.update({name: count for name, count in one.client.figures.items() if name != "requests"})
        figures.takeovers += one.client.takeovers

"""Three replicas behind a proxy that alternates between them, with many clients and random kills."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from tests.checks.replicas.busy import at_work
from tests.checks.replicas.cluster import cluster
from tests.checks.replicas.conftest import Row
from tests.checks.replicas.figures import Figures
from tests.checks.replicas.havoc import Havoc

CLIENTS = 20 * (os.cpu_count() or 1)
"""All of them always ask for something: more would only wait longer."""
TURNS, LEASE = 30, 2.0


@pytest.mark.heavy
@pytest.mark.timeout(600)
async def test_nothing_is_lost_while_replicas_are_killed(
    tmp_path: Path, record: Callable[[str, list[Row]], None]
) -> None:
    async with cluster(tmp_path, lease=LEASE) as three:
        figures, havoc = Figures(), Havoc(three)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True)) as http:
            try:
                await at_work(http, three.url, CLIENTS, figures, partial(havoc.rage, TURNS))
            finally:
                print(three.replicas.said()[-20_000:])
                done = [(name, f"{count:,}") for name, count in havoc.done.items()]
                title = f"{CLIENTS} clients of three replicas, which are harmed {TURNS} times"
                record(title, [*done, *figures.rows()])

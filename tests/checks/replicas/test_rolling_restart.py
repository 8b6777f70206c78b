"""All replicas are restarted one after another, in order, while clients are at work, each of whose requests goes to
another one: none of them sees a failure."""

from collections.abc import Callable
from pathlib import Path

import aiohttp
import anyio
from anyio import to_thread

from tests.checks.replicas.busy import at_work
from tests.checks.replicas.cluster import PATIENCE, cluster
from tests.checks.replicas.conftest import Row
from tests.checks.replicas.figures import Figures

CLIENTS = 30


async def test_no_request_fails_while_all_replicas_are_restarted(
    tmp_path: Path, record: Callable[[str, list[Row]], None]
) -> None:
    figures = Figures()
    async with (
        cluster(tmp_path, lease=2.0) as three,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True)) as http,
    ):

        async def restart() -> None:
            for one in three.replicas.all:
                one.terminate()
                assert await to_thread.run_sync(one.wait) == 0
                one.start()
                await three.replicas.wait_ready(one)
                await leads_to(http, three.url, one.port)

        pids = {one.pid for one in three.replicas.all}
        await at_work(http, three.url, CLIENTS, figures, restart)
        assert not pids & {one.pid for one in three.replicas.all}
    record(f"rolling restart under {CLIENTS} clients", figures.rows())
    assert not figures.failures


async def leads_to(http: aiohttp.ClientSession, url: str, port: int) -> None:
    """Waits until the proxy, which leaves who was away alone for a second, leads to that port again."""
    with anyio.fail_after(PATIENCE):
        while True:
            async with http.get(f"{url}/healthz") as answer:
                if answer.headers["X-Served-By"].endswith(f":{port}"):
                    return
            await anyio.sleep(0.01)

"""All replicas are restarted one after another, in order, while clients are at work: none of them sees a failure."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import aiohttp
import anyio
from anyio import to_thread

from tests.checks.replicas.clients import SessionClient
from tests.checks.replicas.cluster import PATIENCE, Cluster, cluster, until
from tests.checks.replicas.conftest import Row
from tests.checks.replicas.failures import Failed

CLIENTS = 30


async def test_no_request_fails_while_all_replicas_are_restarted(
    tmp_path: Path, record: Callable[[str, list[Row]], None]
) -> None:
    done, failed = Counter[str](), Counter[str]()
    is_over = anyio.Event()
    async with cluster(tmp_path, lease=2.0) as three:
        pids = {one.pid for one in three.replicas.all}
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True)) as http,
            anyio.create_task_group() as tasks,
        ):
            for number in range(CLIENTS):
                tasks.start_soon(Steady(three, http, number, failed).run, is_over, done)
            for one in three.replicas.all:
                one.terminate()
                assert await to_thread.run_sync(one.wait) == 0
                one.start()
                await three.replicas.wait_ready(one)
                await leads_to(http, three.url, one.port)
            is_over.set()
        assert not pids & {one.pid for one in three.replicas.all}
    record(f"rolling restart under {CLIENTS} clients", [(name, f"{count:,}") for name, count in done.items()])
    assert not failed, "\n".join(f"{count} x {what}" for what, count in failed.items())


async def leads_to(http: aiohttp.ClientSession, url: str, port: int) -> None:
    """Waits until the proxy, which leaves who was away alone for a second, leads to that port again."""
    with anyio.fail_after(PATIENCE):
        while True:
            async with http.get(f"{url}/healthz") as answer:
                if answer.headers["X-Served-By"].endswith(f":{port}"):
                    return
            await anyio.sleep(0.01)


class Steady:
    """A client that does this and that, and counts each failure. Only streams may be taken up anew."""

    def __init__(self, three: Cluster, http: aiohttp.ClientSession, number: int, failed: Counter[str]) -> None:
        self._client = SessionClient(http, three.url)
        self._name = f"steady{number}"
        self._uri = f"counter://{self._name}"
        self._failed = failed

    async def run(self, is_over: anyio.Event, done: Counter[str]) -> None:
        """Goes on until it is over."""
        client = self._client
        await client.open()
        await client.request("resources/subscribe", {"uri": self._uri})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.listen)
            while not is_over.is_set():
                for act in (self._count, self._ask, self._bump):
                    try:
                        await act()
                    except Failed as failed:
                        self._failed[f"{act.__name__}: {type(failed).__name__} {str(failed)[:150]}"] += 1
                done["rounds"] += 1
            tasks.cancel_scope.cancel()
        done.update(client.figures)

    async def _count(self) -> None:
        call = self._client.new_call()
        assert await self._client.tool("count", call, n=10, pause_ms=20) == "counted to 10"
        assert call.logs == list(range(1, 11))

    async def _ask(self) -> None:
        assert await self._client.tool("ask", question="which") == "accept: which"

    async def _bump(self) -> None:
        heard = self._client.notices[self._uri]
        number = int(await self._client.tool("bump", name=self._name))
        found = await self._client.request("resources/read", {"uri": self._uri})
        assert int(found["contents"][0]["text"]) == number
        await until(lambda: self._client.notices[self._uri] > heard, "a change was not heard of")

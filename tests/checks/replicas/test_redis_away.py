"""Redis is restarted and killed beneath the replicas: dependent requests wait or are refused, the rest continues."""

import json

import aiohttp
import anyio
import pytest

from tests.checks.replicas.clients import SessionClient, connected, stateless
from tests.checks.replicas.cluster import Cluster, until
from tests.checks.replicas.failures import NotRun

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

Http = aiohttp.ClientSession
COUNTER = "counter://one"


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
async def test_service_resumes_with_redis(three: Cluster, http: Http, kill: bool) -> None:
    async with connected(http, three[0].url) as client:
        await client.request("resources/subscribe", {"uri": COUNTER})
        before = int(await client.tool("bump", name="one"))
        await until(lambda: client.notices[COUNTER] > 0, "the first change was not heard of")

        three.redis.stop(kill=kill)
        for one in three.replicas.all:
            said = json.loads(await three.replicas.wait_ready(one, ready=False))
            assert "reason" in json.dumps(said), said
            assert await stateless(http, one.url, "still here") == "still here"
        with pytest.raises(NotRun):
            await SessionClient(http, three[1].url).open()
        with pytest.raises(NotRun):
            await client.tool("echo", text="hello")

        three.redis.start()
        for one in three.replicas.all:
            await three.replicas.wait_ready(one)
        client.link.base_url = three[1].url
        assert await client.tool("echo", text="hello") == "hello"
        heard = client.notices[COUNTER]
        assert int(await client.tool("bump", name="one")) == before + 1
        await until(lambda: client.notices[COUNTER] > heard, "a change after the restart was not heard of")


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
async def test_a_stream_continues_when_redis_returns(three: Cluster, http: Http, kill: bool) -> None:
    """Numbers that were logged meanwhile come once each, or the call fails with a typed error."""
    client = SessionClient(http, three.url)
    await client.open()
    call = client.new_call()

    async with anyio.create_task_group() as tasks:

        async def count() -> None:
            assert await client.tool("count", call, n=60, pause_ms=20) == "counted to 60"

        tasks.start_soon(count)
        await until(lambda: len(call.logs) > 3, "nothing was counted")
        three.redis.stop(kill=kill)
        three.redis.start()
    assert call.logs == list(range(1, 61))


async def test_a_refused_request_is_not_executed_later(three: Cluster, http: Http) -> None:
    """A refusal that says "try again" means that nothing was done, and nothing is."""
    client = SessionClient(http, three[0].url)
    await client.open()
    await client.request("logging/setLevel", {"level": "info"})
    for at in (0, 1):
        client.link.base_url = three[at].url
        await client.tool("echo", text="hello")
    three.redis.stop()
    with pytest.raises(NotRun):
        await client.request("logging/setLevel", {"level": "error"})
    with pytest.raises(NotRun):
        await client.tool("bump", name="refused")
    three.redis.start()
    await three.heal()
    for at in (0, 1, 0):
        client.link.base_url = three[at].url
        call = client.new_call()
        await client.tool("count", call, n=2)
        assert call.logs == [1, 2]
    result = await client.request("resources/read", {"uri": "counter://refused"})
    assert result["contents"][0]["text"] == "0"

"""What operators are told of a store: whether it can be reached, how often a lease was lost, and by which replica."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from shared.testing import replicas
from tests.clock import forward
from tests.redis_server import RedisServer
from tests.redis_stores import InRedis
from tests.shared.transports.http.http_wire import PATIENCE, Json, Site, listening, make_server, served

LEASE_SECONDS = 3_000.0
"""So long that none runs out but where the clock is set ahead."""
CLOSE = {"Connection": "close"}
"""No connection is idle when the clock is set ahead."""


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """One that may be stopped."""
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.stop(kill=True)


async def counted(site: Site) -> dict[str, float]:
    """What /metrics says of the store."""
    answer = await site.client.get("/metrics", headers=CLOSE)
    families = text_string_to_metric_families(answer.text)
    found = [sample for family in families for sample in family.samples if sample.name.startswith("mcp_store_")]
    assert all(sample.labels == {"server": "sample"} for sample in found)
    return {sample.name: sample.value for sample in found}


async def stated(site: Site) -> Any:
    return (await site.client.get("/debug/state", headers=CLOSE)).json()["servers"]["sample"]


async def until(site: Site, **expected: float) -> None:
    """Waits until /metrics says so."""
    with anyio.fail_after(PATIENCE):
        while not (await counted(site)).items() >= expected.items():
            await anyio.lowlevel.checkpoint()


async def test_without_a_store_nothing_is_said_of_one() -> None:
    async with served() as site:
        assert await counted(site) == {}
        assert "replica" not in await stated(site)


async def test_each_replica_says_which_one_it_is() -> None:
    async with replicas(make_server(), 2) as (one, other), listening(one) as here, listening(other) as there:
        told: list[Json] = [(await stated(site))["replica"] for site in (here, there)]
        assert told == [{"number": run.replica.number, "reason": None} for run in (one, other)]
        assert told[0] != told[1]
        assert await counted(here) == {"mcp_store_up": 1, "mcp_store_lost_total": 0}


async def test_a_replica_that_lost_its_lease_counts_that_and_says_why(own_server: RedisServer) -> None:
    stores = InRedis(own_server, LEASE_SECONDS)
    patience = 2 * LEASE_SECONDS
    async with replicas(make_server(), 1, stores) as (one,), listening(one, patience=patience) as site:
        before = (await stated(site))["replica"]
        assert before["reason"] is None
        own_server.stop(kill=True)
        forward(LEASE_SECONDS)
        await until(site, mcp_store_up=0, mcp_store_lost_total=1)
        assert (await stated(site))["replica"]["reason"]
        own_server.start()
        await until(site, mcp_store_up=1, mcp_store_lost_total=1)
        assert (await stated(site))["replica"]["reason"] is None


async def test_a_store_that_was_never_reached_is_down_and_its_secrets_are_not_told(tmp_path: Path) -> None:
    nowhere = RedisServer(tmp_path)
    nowhere.url = "redis://ada:hunter2@127.0.0.1:1/0"
    async with replicas(make_server(), 1, InRedis(nowhere)) as (one,), listening(one) as site:
        assert await counted(site) == {"mcp_store_up": 0, "mcp_store_lost_total": 0}
        reason = (await stated(site))["replica"]["reason"]
        assert "Redis can't be reached" in reason
        assert not any(part in reason for part in ("redis:", "ada", "hunter2"))

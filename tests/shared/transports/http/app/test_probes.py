"""The probes /readyz and /metrics of a server, and what they report of its store."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from shared.auth.authenticators import OAuthTokens
from shared.auth.claims import ClaimRules
from shared.auth.first_contact import FirstContact
from shared.auth.jwt import JwtTokens
from shared.auth.possession import Possession
from shared.auth.tokens import StaticTokens
from shared.errors import AuthError
from shared.telemetry import readiness
from shared.testing import replicas
from shared.transports.http.limits.endpoint_limits import ClientLimits, EndpointLimits
from tests.clock import forward
from tests.redis_server import RedisServer
from tests.redis_stores import InRedis
from tests.shared.transports.http.http_wire import PATIENCE, Json, Site, listening, make_server, merged, served
from tests.shared.transports.http.web_socket import web_socket

SECRET = {"Authorization": "Bearer secret"}


def samples(answer: httpx.Response) -> dict[tuple[str, str], float]:
    """Parses metrics; keys are the name and the label values."""
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, "/".join(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def counted(site: Site) -> dict[tuple[str, str], float]:
    return samples(await site.client.get("/metrics"))


async def test_a_server_without_a_check_is_ready() -> None:
    async with served() as site:
        answer = await site.client.get("/readyz")
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
        assert answer.json() == {"status": "ready", "servers": {"sample": {"status": "ready"}}}


async def test_readyz_reports_the_reason_of_a_failed_check() -> None:
    app, reasons = make_server(), ["the disk is full"]

    @app.on_ready
    async def full(_running: object) -> str | None:
        return reasons.pop() if reasons else None

    async with served(app) as site:
        answer = await site.client.get("/readyz")
        degraded = {"status": "degraded", "reason": "the disk is full"}
        assert (answer.status_code, answer.json()) == (503, {"status": "not ready", "servers": {"sample": degraded}})
        assert (await site.client.get("/healthz")).status_code == 200
        assert (await site.client.get("/readyz")).status_code == 200


async def test_a_listener_is_not_ready_until_an_issuer_has_answered() -> None:
    is_up = anyio.Event()

    async def ask() -> None:
        if not is_up.is_set():
            raise AuthError("down")

    tokens = OAuthTokens(
        JwtTokens([], ClaimRules()),
        Possession(),
        own_tokens=StaticTokens(("secret",)),
        first_contact=FirstContact({"https://login.example": ask}),
    )
    async with served(authenticator=tokens) as site:
        answer = await site.client.get("/readyz", headers=SECRET)
        assert (answer.status_code, answer.json()) == (
            503,
            {
                "status": "not ready",
                "servers": {"sample": {"status": "ready"}},
                "reason": "no answer yet from the issuer https://login.example",
            },
        )
        assert (await site.client.get("/readyz")).json() == {"status": "not ready"}
        is_up.set()
        forward(5.0)
        with anyio.fail_after(PATIENCE):
            while (await site.client.get("/readyz")).status_code != 200:
                await anyio.sleep(0)


async def test_readyz_without_a_token_shows_only_the_status() -> None:
    app = make_server()

    @app.on_ready
    async def full(_running: object) -> str | None:
        return "the disk is full"

    async with served(app, tokens=("secret",)) as site:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            answer = await site.client.get("/readyz", headers=headers)
            assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})
            answer = await site.client.get("/healthz", headers=headers)
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert "the disk is full" in (await site.client.get("/readyz", headers=SECRET)).text


async def test_an_exception_in_a_check_is_logged_but_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    app = make_server()

    @app.on_ready
    async def broken(_running: object) -> str | None:
        raise RuntimeError("a secret detail")

    async with served(app) as site:
        for _ in range(2):
            answer = await site.client.get("/readyz")
            assert answer.status_code == 503
            assert "secret" not in answer.text
    assert caplog.text.count("RuntimeError: a secret detail") == 1


async def test_a_hanging_check_does_not_delay_readyz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "CHECK_SECONDS", 0.02)
    app, starts, go_on = make_server(), list[int](), anyio.Event()

    @app.on_ready
    async def hang(_running: object) -> str | None:
        starts.append(1)
        await go_on.wait()
        return None

    async with served(app) as site:
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(_not_ready, site)
        await _not_ready(site)
        assert len(starts) == 1
        monkeypatch.setattr(readiness, "CHECK_SECONDS", 60)
        go_on.set()
        while (await site.client.get("/readyz")).status_code != 200:
            await anyio.lowlevel.checkpoint()
        assert len(starts) <= 2


async def _not_ready(site: Site) -> None:
    answer = await site.client.get("/readyz")
    assert (answer.status_code, "its check did not finish" in answer.text) == (503, True)


async def test_a_hanging_check_is_cancelled_and_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "MAX_CHECK_SECONDS", 0.02)
    app, starts = make_server(), list[int]()

    @app.on_ready
    async def hang_once(_running: object) -> str | None:
        starts.append(1)
        if len(starts) == 1:
            await anyio.sleep_forever()
        return None

    async with served(app) as site:
        assert (await site.client.get("/readyz")).status_code == 503
        monkeypatch.setattr(readiness, "MAX_CHECK_SECONDS", 60)
        assert (await site.client.get("/readyz")).status_code == 200


# Metrics


async def test_requests_and_errors_are_counted_in_both_eras() -> None:
    async with served() as site:
        session = await site.initialize()
        for headers in (session, None):
            for tool, arguments in (("echo", {"text": "x"}), ("echo", {}), ("broken", {}), ("nothing", {})):
                params = {"name": tool, "arguments": arguments}
                if headers is None:
                    await site.call("tools/call", params)
                else:
                    await site.post(site.message("tools/call", params), headers)
        await site.post(site.message("made/up"), session)
        got = await counted(site)
    assert got["mcp_requests_total", "initialize/sample/"] == 1
    assert got["mcp_requests_total", "tools/call/sample/echo"] == 4
    assert got["mcp_request_duration_seconds_count", "tools/call/sample/echo"] == 4
    assert got["mcp_request_duration_seconds_bucket", "+Inf/tools/call/sample/echo"] == 4
    assert got["mcp_request_errors_total", "tool/tools/call/sample/echo"] == 2
    assert got["mcp_request_errors_total", "server/tools/call/sample/broken"] == 2
    assert got["mcp_request_errors_total", "client/tools/call/sample/other"] == 2
    assert got["mcp_request_errors_total", "client/other/sample/"] == 1


async def test_open_sessions_streams_and_subscriptions_are_gauges() -> None:
    async with served() as site:
        session = await site.initialize()
        await site.initialize()
        await site.post(site.message("resources/subscribe", {"uri": "memo://one"}), session)
        async with site.client.stream("GET", "/mcp", headers=merged(session)):
            got = await counted(site)
    assert {name: got[name, "sample"] for name, labels in got if labels == "sample"} == {
        "mcp_server_up": 1,
        "mcp_sessions": 2,
        "mcp_streams": 1,
        "mcp_subscriptions": 1,
    }


async def test_refused_requests_are_counted_by_status() -> None:
    async with served(tokens=("secret",)) as site:
        await site.post(b"{", SECRET)
        await site.call("tools/list")
        await site.call("tools/list")
        await site.client.post("/mcp", headers={"Host": "evil.example"})
        got = samples(await site.client.get("/metrics", headers=SECRET))
    assert {labels: got[name, labels] for name, labels in got if name == "mcp_http_refused_total"} == {
        "sample/400": 1,
        "sample/401": 2,
        "sample/403": 1,
    }


async def test_limited_requests_are_counted_over_each_transport() -> None:
    limits = EndpointLimits(clients=ClientLimits(per_second=0.001, burst=4, calls=1))
    async with served(limits=limits) as site, web_socket(site) as socket:
        await socket.initialize()
        for number in range(3):  # one more call than may run, and one more request than the rate allows
            await socket.send(site.message("tools/call", {"name": "wait", "arguments": {}}, id=number))
        for _ in range(2):
            assert "error" in json.loads((await socket.next()).data)
        await site.call("tools/list")
        got = await counted(site)
    assert got["mcp_http_refused_total", "sample/429"] == 3


async def test_metrics_without_prometheus_client_answer_501(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    async with served() as site:
        answer = await site.client.get("/metrics")
        assert (answer.status_code, "this needs the extra 'http'" in answer.text) == (501, True)


async def test_metrics_are_written_in_the_accepted_format() -> None:
    async with served() as site:
        for accept in ("text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0"):
            answer = await site.client.get("/metrics", headers={"Accept": accept})
            assert answer.headers["content-type"].startswith(accept.partition(";")[0])


async def test_probes_accept_any_host_on_a_public_address() -> None:
    evil, probes = {"Host": "10.0.0.7:1"}, ("/healthz", "/readyz", "/metrics")
    for host, status in (("127.0.0.1", 403), ("0.0.0.0", 200)):
        async with served(allowed_hosts=("mcp.example",), host=host) as site:
            assert {(await site.client.get(path, headers=evil)).status_code for path in probes} == {status}
            assert (await site.client.post("/mcp", headers=evil)).status_code == 403


async def test_a_run_without_a_listener_has_no_observer() -> None:
    async with make_server().open() as running:
        assert running.hooks.make_observer() is None


# A store
LEASE_SECONDS = 3_000.0
"""So long that none runs out but where the clock is set ahead."""
CLOSE = {"Connection": "close"}
"""No connection is idle when the clock is set ahead."""


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server that the test may stop."""
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.stop(kill=True)


async def counted_of_store(site: Site) -> dict[str, float]:
    """Returns the store metrics of /metrics."""
    answer = await site.client.get("/metrics", headers=CLOSE)
    families = text_string_to_metric_families(answer.text)
    found = [sample for family in families for sample in family.samples if sample.name.startswith("mcp_store_")]
    assert all(sample.labels == {"server": "sample"} for sample in found)
    return {sample.name: sample.value for sample in found}


async def stated(site: Site) -> Any:
    return (await site.client.get("/debug/state", headers=CLOSE)).json()["servers"]["sample"]


async def until(site: Site, **expected: float) -> None:
    """Waits until /metrics shows these values."""
    with anyio.fail_after(PATIENCE):
        while not (await counted_of_store(site)).items() >= expected.items():
            await anyio.lowlevel.checkpoint()


async def test_probes_without_a_store_report_no_store() -> None:
    async with served() as site:
        assert await counted_of_store(site) == {}
        assert "replica" not in await stated(site)


async def test_each_replica_reports_its_number() -> None:
    async with replicas(make_server(), 2) as (one, other), listening(one) as here, listening(other) as there:
        reported: list[Json] = [(await stated(site))["replica"] for site in (here, there)]
        assert reported == [{"number": run.replication.replica.number, "reason": None} for run in (one, other)]
        assert reported[0] != reported[1]
        assert await counted_of_store(here) == {"mcp_store_up": 1, "mcp_store_lost_total": 0}


async def test_a_lost_lease_is_counted_and_its_reason_reported(own_server: RedisServer) -> None:
    stores = InRedis(own_server, LEASE_SECONDS)
    patience = 2 * LEASE_SECONDS
    async with replicas(make_server(), 1, stores) as (one,), listening(one, patience=patience) as site:
        previous = (await stated(site))["replica"]
        assert previous["reason"] is None
        own_server.stop(kill=True)
        forward(LEASE_SECONDS)
        await until(site, mcp_store_up=0, mcp_store_lost_total=1)
        assert (await stated(site))["replica"]["reason"]
        own_server.start()
        await until(site, mcp_store_up=1, mcp_store_lost_total=1)
        assert (await stated(site))["replica"]["reason"] is None


async def test_an_unreachable_store_is_reported_down_without_its_credentials(tmp_path: Path) -> None:
    nowhere = RedisServer(tmp_path)
    nowhere.url = "redis://ada:hunter2@127.0.0.1:1/0"
    async with replicas(make_server(), 1, InRedis(nowhere)) as (one,), listening(one) as site:
        assert await counted_of_store(site) == {"mcp_store_up": 0, "mcp_store_lost_total": 0}
        reason = (await stated(site))["replica"]["reason"]
        assert "Redis can't be reached" in reason
        assert not any(part in reason for part in ("redis:", "ada", "hunter2"))

"""HTTP+SSE with several replicas: one has the stream, and any may get the POSTs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest

from shared.auth import tokens_file
from shared.auth.tokens import StaticTokens
from shared.extensions.dialects import DIALECTS
from shared.stores.memory import Stores
from shared.testing import replicas
from shared.transports.http.limits.endpoint_limits import EndpointLimits
from shared.transports.http.streamable import token_expiry
from tests.redis_server import RedisServer
from tests.redis_stores import InRedis
from tests.shared.transports.http.http_wire import IN_BOTH, PATIENCE, Json, Site, Two, listening, make_server, stopped
from tests.shared.transports.http.sse_wire import SseClient, initialized, streaming


@asynccontextmanager
async def apart(here: Site, there: Site, headers: Json | None = None) -> AsyncIterator[SseClient]:
    """Yields a client with its stream `here` that posts `there`."""
    async with streaming(here, headers) as client:
        client.posts_at(there)
        yield client


async def status(site: Site, address: str, headers: Json | None = None) -> int:
    """Posts a ping to a site; returns the status."""
    return (await site.client.post(address, json=site.message("ping"), headers=headers)).status_code


@IN_BOTH
async def test_a_session_is_served_through_another_replica(two: Two) -> None:
    async with two() as (here, there), apart(here, there) as client:
        await client.initialize("2024-11-05")
        assert await client.call("echo", {"text": "hi"}) == "hi"
        client.posts_at(here)
        assert await client.call("echo", {"text": "again"}) == "again"
        assert [(await site.health())["sessions"] for site in (here, there)] == [1, 0]


@IN_BOTH
async def test_answers_and_cancellations_may_be_posted_to_another_replica(two: Two) -> None:
    async with two() as (here, there), initialized(here, capabilities={"elicitation": {}}) as client:
        await client.send(here.message("tools/call", {"name": "favourite", "arguments": {}}))
        question = await client.next()
        client.posts_at(there)
        answer = {"action": "accept", "content": {"colour": "red"}}
        await client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        assert (await client.next())["result"]["content"][0]["text"] == "red"
        waiting = here.message("tools/call", {"name": "wait", "arguments": {}})
        await client.send(waiting)
        await here.probe.started.wait()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": waiting["id"]}}
        await client.send(cancel)
        await here.probe.cancelled.wait()


async def test_errors_of_a_forwarded_request_arrive_on_the_stream(two: Two) -> None:
    async with two() as (here, there), initialized(here) as client:
        client.posts_at(there)
        wrong = here.message("ping")
        await client.send(wrong, {"MCP-Protocol-Version": "2025-03-26"})
        refused = await client.next()
        assert (refused["id"], refused["error"]["code"]) == (wrong["id"], -32600)
        await client.send(b"no JSON")  # it gets no answer
        assert (await client.ask("ping"))["result"] == {}


async def test_a_session_belongs_to_its_principal_on_every_replica(two: Two) -> None:
    mine, others = ({"Authorization": f"Bearer {name}"} for name in ("one", "two"))
    async with two(tokens=("one", "two")) as (here, there), apart(here, there, mine) as client:
        await client.initialize()
        assert await status(here, client.address, others) == 404
        assert await status(there, client.address, {}) == 401
        # Only the replica with the stream knows its principal; it drops the message.
        assert await status(there, client.address, others) == 202
        assert await client.call("echo", {"text": "mine"}) == "mine"


async def test_an_unknown_session_id_is_refused_on_every_replica(two: Two) -> None:
    async with two() as (here, there):
        async with streaming(here) as client:
            number = here.running.replication.replica.number
            assert f"session_id={number}-" in client.address
            assert await status(here, f"{client.address}x") == 404
            for session_id in ("", "x", f"{number + 1_000}-x", "99999999-x", "-1-x"):
                assert await status(there, f"/messages?session_id={session_id}") == 404
        await here.idle()
        assert await status(here, client.address) == 404


async def test_oversized_and_non_json_posts_are_not_forwarded(two: Two) -> None:
    async with two(limits=EndpointLimits(body_bytes=1_000)) as (here, there), apart(here, there) as client:
        assert (await client.post(b" " * 1_001)).status_code == 413
        assert (await client.post(b"", {"Content-Type": "text/plain"})).status_code == 415


async def test_a_session_of_a_stopped_replica_is_unknown() -> None:
    stores = Stores()
    async with replicas(make_server(), 1, stores) as (other,), listening(other) as there:
        async with replicas(make_server(), 1, stores) as (one,), listening(one) as here, streaming(here) as client:
            await stopped(here)
            assert await client.rest() == []
        assert await status(there, client.address) == 404


async def test_streams_end_when_their_replica_loses_its_lease(redis_server: RedisServer) -> None:
    async with (
        replicas(make_server(), 2, InRedis(redis_server)) as (one, other),
        listening(one) as here,
        listening(other) as there,
    ):
        async with initialized(here) as client:
            one.replication.replica.link.give_up_lease("as the test wants")
            assert await status(here, f"/messages?session_id={other.replication.replica.number}-x") == 503
            with pytest.raises(httpx.RemoteProtocolError):
                await client.rest()
        with anyio.fail_after(PATIENCE):
            while one.replication.replica.disconnect_reason is not None:
                await anyio.lowlevel.checkpoint()
        async with apart(here, there) as client:
            await client.initialize()
            assert await client.call("echo", {"text": "hi"}) == "hi"


async def test_a_dialect_is_decoded_by_the_replica_with_the_stream() -> None:
    stores, limits, spoken = Stores(), EndpointLimits(dialects=True), [DIALECTS]
    async with (
        make_server().open(stores=stores, extensions=spoken) as one,
        make_server().open(stores=stores, extensions=spoken) as other,
        listening(one, limits=limits) as here,
        listening(other, limits=limits) as there,
        streaming(here) as client,
    ):
        await client.send({"jsonrpc": "2.0", "id": None, "method": "mcp/initialize", "params": {}})
        assert (await client.next())["result"]["name"] == "sample"
        client.posts_at(there)
        params = {"toolId": "sample/echo", "inputs": {"text": "hi"}}
        await client.send({"jsonrpc": "2.0", "id": 1, "method": "mcp/tool/execute", "params": params})
        assert (await client.next())["result"] == "hi"


@IN_BOTH
async def test_a_revoked_token_ends_the_stream_at_another_replica(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_expiry, "REVOKED_SECONDS", 0.01)
    monkeypatch.setattr(tokens_file, "CHECK_SECONDS", 0.0)
    path, headers = tmp_path / "tokens.toml", {"Authorization": "Bearer ada"}
    path.write_text(f'[ada]\ndigest = "{tokens_file.digest_of("ada")}"\n')
    everybody = StaticTokens((), tokens_file.TokensFile(path))
    async with two(authenticator=everybody) as (here, there), apart(here, there, headers) as client:
        await client.initialize()
        assert await client.call("echo", {"text": "mine"}) == "mine"
        path.write_text("")
        with anyio.fail_after(PATIENCE):
            assert await client.rest() == []

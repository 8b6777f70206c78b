"""Two replicas that share a Redis: what one has loaded the other need not load, and a page goes on at either."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from servers.fetch.load.cache import Kept
from servers.fetch.load.shared_cache import SharedCache, SharedEntries
from servers.fetch.pages.snapshots import Snapshot
from servers.fetch.read.page import Loaded, Page
from shared.errors import Unavailable
from shared.stores.memory_blobs import MemoryBlobs
from tests.redis_server import RedisServer
from tests.servers.fetch.serving import COMMAND, asked_over_http
from tests.servers.fetch.sites import answer, opened_site
from tests.wire import start_http

HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
ONE = Kept(200, {"cache-control": "max-age=60"}, b"\x00\xff", 2, (("accept", "a"),), 1_000.0, 0.0)


@asynccontextmanager
async def two(server: RedisServer) -> AsyncIterator[list[httpx.AsyncClient]]:
    """A client at each of two replicas; both have one session."""
    env = {**os.environ, "MCP_STATE_KEY": "secret", "MCP_STORE": server.url, "MCP_STORE_PREFIX": "fetched:"}
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(2):
            url = await stack.enter_async_context(start_http(COMMAND, env=env))
            client = httpx.AsyncClient(base_url=url, headers=HEADERS, trust_env=False)
            clients.append(await stack.enter_async_context(client))
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        opened = await clients[0].post("/mcp", json=hello)
        for client in clients:
            client.headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
        yield clients


async def fetched(client: httpx.AsyncClient, url: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """What a model is shown, and the facts for programs."""
    result = await asked_over_http(
        client, "tools/call", name="fetch", arguments={"url": url, "format": "text", **arguments}
    )
    return result["content"][0]["text"], result["_meta"]


@pytest.mark.slow
async def test_a_page_that_one_has_loaded_goes_on_at_the_other(redis_server: RedisServer) -> None:
    text = " ".join(f"word{number}" for number in range(500))
    fresh = answer(text, cache_control="max-age=60", content_type="text/plain")
    routes = {"/a": fresh, "/b": answer(text, content_type="text/plain")}
    async with opened_site(routes) as site, two(redis_server) as (here, there):
        await fetched(here, site.url("/a"), max_length=100)
        _, facts = await fetched(there, site.url("/a"), max_length=100)
        assert (facts["fromCache"], site.paths) == (True, ["/a"])
        # This one may not be kept by the rules of HTTP, but what a client was shown is to go on.
        await fetched(here, site.url("/b"), max_length=100)
        site.routes["/b"] = answer("another text", content_type="text/plain")
        shown, _ = await fetched(there, site.url("/b"), max_length=100, start_index=100)
        assert text[100:200] in shown
        assert site.paths == ["/a", "/b"]


async def test_an_answer_is_found_by_requests_that_it_fits() -> None:
    cache = SharedCache(MemoryBlobs())
    await cache.put("http://a/", ONE)
    assert await cache.find("http://a/", {"accept": "a"}) == ONE
    assert await cache.find("http://a/", {"accept": "b"}) is None
    assert await cache.find("http://b/", {"accept": "a"}) is None


async def test_what_may_not_be_kept_is_not_shared() -> None:
    cache = SharedCache(MemoryBlobs())
    await cache.put("http://a/", ONE._replace(headers={"cache-control": "no-store"}))
    assert await cache.find("http://a/", {"accept": "a"}) is None


async def test_a_snapshot_comes_back_as_it_was() -> None:
    loaded = Loaded("http://a/", ("http://b/",), 200, {"a": "b"}, "text/html", None, b"", 0, True, 1.5, "f")
    snapshot = Snapshot(loaded, 7, Page("text", "html", notes=("a note",), image=b"\xff"))
    entries = SharedEntries(MemoryBlobs(), "page", Snapshot, 60.0)
    await entries.put(snapshot, "ada", "http://a/")
    assert await entries.get("ada", "http://a/") == snapshot
    assert await entries.get("bob", "http://a/") is None


async def test_a_large_one_is_not_shared() -> None:
    entries = SharedEntries(MemoryBlobs(), "page", Page, 60.0)
    await entries.put(Page("", "image", image=os.urandom(1_100_000)), "a")
    assert await entries.get("a") is None


async def test_what_is_out_of_reach_or_not_readable_is_nothing() -> None:
    class Away:
        async def put(self, *_: object) -> str:
            raise Unavailable

        async def get(self, _name: str) -> bytes:
            raise Unavailable

    cache = SharedCache(Away())
    await cache.put("http://a/", ONE)
    assert await cache.find("http://a/", {}) is None
    blobs = MemoryBlobs()
    entries = SharedEntries(blobs, "page", Page, 60.0)
    await entries.put(Page("text", "text"), "a")
    for data in (b"no zlib", b"x\x9c\x03\x00\x00\x00\x00\x01"):
        await blobs.put(data, 60.0, next(iter(blobs._kept)))
        assert await entries.get("a") is None

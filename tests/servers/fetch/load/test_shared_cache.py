"""Responses and snapshots that replicas share."""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.load import loader
from servers.fetch.load.cache import StoredAnswer
from servers.fetch.load.headers import parse_host_header
from servers.fetch.load.loader import Loader
from servers.fetch.load.shared_cache import MAX_UNCOMPRESSED_BYTES, Blobs, SharedCache, SharedEntries
from servers.fetch.pages.snapshots import Snapshot
from servers.fetch.read.page import LoadedPage, Page
from shared.errors import Unavailable
from shared.stores.memory_blobs import MemoryBlobs
from tests.servers.fetch.loaders import opened_loader, refused
from tests.servers.fetch.sites import answer, opened_site

ONE = StoredAnswer(200, {"cache-control": "max-age=60"}, b"\x00\xff", 2, (("accept", "a"),), 1_000.0, 0.0)


async def test_a_shared_response_matches_by_url_and_vary() -> None:
    cache = SharedCache(MemoryBlobs())
    await cache.put("http://a/", ONE)
    assert await cache.find("http://a/", {"accept": "a"}) == ONE
    assert await cache.find("http://a/", {"accept": "b"}) is None
    assert await cache.find("http://b/", {"accept": "a"}) is None


async def test_a_no_store_response_is_not_shared() -> None:
    cache = SharedCache(MemoryBlobs())
    await cache.put("http://a/", ONE._replace(headers={"cache-control": "no-store"}))
    assert await cache.find("http://a/", {"accept": "a"}) is None


async def test_a_shared_snapshot_is_restored_for_its_owner_only() -> None:
    loaded = LoadedPage("http://a/", ("http://b/",), 200, {"a": "b"}, "text/html", None, b"", 0, True, 1.5, "f")
    snapshot = Snapshot(loaded, 7, Page("text", "html", notes=("a note",), image=b"\xff"))
    entries = SharedEntries(MemoryBlobs(), "page", Snapshot, 60.0)
    await entries.put(snapshot, 4, "ada", "http://a/")
    assert await entries.get("ada", "http://a/") == snapshot
    assert await entries.get("bob", "http://a/") is None


async def test_a_large_snapshot_is_not_shared_and_removes_the_old_one() -> None:
    entries = SharedEntries(MemoryBlobs(), "page", Page, 60.0)
    for size in (0, MAX_UNCOMPRESSED_BYTES + 1):
        await entries.put(Page("small", "text"), 5, "a")
        assert await entries.get("a") is not None
        await entries.put(Page("", "image", image=os.urandom(0 if size else 1_100_000)), size, "a")
        assert await entries.get("a") is None, "the one before it is no longer what was shown last"


async def test_a_replica_removes_its_oldest_entries_beyond_its_share() -> None:
    now = 0.0
    entries = SharedEntries(MemoryBlobs(), "page", Page, 60.0, room=2_000, clock=lambda: now)
    for name in "abc":
        await entries.put(Page("", "image", image=os.urandom(700)), 700, name)
    assert [await entries.get(name) is not None for name in "abc"] == [False, True, True]
    now += 61.0
    await entries.put(Page("small", "text"), 5, "d")
    assert list(entries._own_entries) == [entries._make_name(("d",))]


@asynccontextmanager
async def two_loaders(blobs: Blobs, **rules: Any) -> AsyncIterator[list[Loader]]:
    async with opened_loader(**rules) as here, opened_loader(**rules) as there:
        for one in (here, there):
            one._shared = SharedCache(blobs)
        yield [here, there]


FRESH = {"cache_control": "max-age=60", "content_type": "text/plain"}


async def test_a_refresh_at_one_replica_updates_the_others() -> None:
    async with opened_site({"/": answer("old", **FRESH)}) as site, two_loaders(MemoryBlobs()) as (here, there):
        await here.load(site.url())
        site.routes["/"] = answer("new", **FRESH)
        await there.load(site.url(), refresh=True)
        loaded = await here.load(site.url())
        assert (loaded.body, loaded.from_cache, len(site.requests)) == (b"new", True, 2)


@pytest.mark.parametrize(
    "gone", [answer(status=404), answer("new", cache_control="no-store")], ids=["404", "no-store"]
)
async def test_a_gone_page_is_removed_from_the_shared_cache(gone: bytes) -> None:
    async with opened_site({"/": answer("old", **FRESH)}) as site, two_loaders(MemoryBlobs()) as (here, there):
        await here.load(site.url())
        site.routes["/"] = gone
        with suppress(FetchError):
            await there.load(site.url(), refresh=True)
        with suppress(FetchError):
            assert (await there.load(site.url())).body == b"new"
        assert len(site.requests) == 3


async def test_a_shared_response_is_refused_where_its_address_is_blocked() -> None:
    async with (
        opened_site({"/": answer("text", **FRESH)}) as site,
        opened_loader() as here,
        opened_loader(["127.0.0.1:1"]) as there,
    ):
        here._shared = there._shared = SharedCache(MemoryBlobs())
        await here.load(site.url())
        assert (await refused(there, site.url())).code == "blocked_address"


async def test_a_slow_clock_does_not_prolong_freshness(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = {"/": answer("text", cache_control="max-age=9")}
    async with opened_site(routes) as site, two_loaders(MemoryBlobs()) as (here, there):
        now = time.time()
        monkeypatch.setattr(loader, "time", lambda: now)
        await here.load(site.url())
        for seconds, from_cache in ((-5.0, True), (3.0, True), (5.0, False)):
            monkeypatch.setattr(loader, "time", lambda at=now + seconds: at)
            assert (await there.load(site.url())).from_cache is from_cache, seconds


async def test_a_response_to_credentials_is_not_shared() -> None:
    async with opened_site({"/": answer("secret", vary="authorization", **FRESH)}) as site:
        blobs, header = MemoryBlobs(), parse_host_header(f"127.0.0.1:{site.port}=Authorization: Bearer secret")
        async with two_loaders(blobs, headers=(header,)) as (here, there):
            await here.load(site.url())
            assert (await here.load(site.url())).from_cache
            assert not (await there.load(site.url())).from_cache
        assert {data for _, data in blobs._entries.values()} == {b""}


async def test_an_unavailable_or_unreadable_entry_is_a_cache_miss() -> None:
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
    await entries.put(Page("text", "text"), 4, "a")
    for data in (b"no zlib", b"x\x9c\x03\x00\x00\x00\x00\x01"):
        await blobs.put(data, 60.0, next(iter(blobs._entries)))
        assert await entries.get("a") is None

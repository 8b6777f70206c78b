"""Loads a page and reads it."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from servers.fetch.load.loader import Loader, LoadRules
from servers.fetch.load.shared_cache import Blobs, SharedCache
from servers.fetch.load.throttling import ByteBudget, Stopwatch
from servers.fetch.network.address_policy import Endpoint, Policy
from servers.fetch.network.client import ClientOptions, open_client
from servers.fetch.network.connecting import SystemResolver
from servers.fetch.pages.snapshots import Snapshot, Wanted
from servers.fetch.read.reader import Reader, open_reader
from servers.fetch.settings import Settings

_MEBIBYTE = 1024 * 1024
_LARGE_PAGES = 128 * _MEBIBYTE
"""Bytes of pages that are loaded, read, or wait for either, at once: with what reading takes, less than half of what
the containers of this server have."""


class Fetcher(NamedTuple):
    """The way from a URL to what is shown."""

    loader: Loader
    reader: Reader
    budget: ByteBudget

    async def fetch(self, wanted: Wanted, *, refresh: bool = False, site: Stopwatch | None = None) -> Snapshot:
        """The page as it is now, or as the cache may still give it; `site` counts what its site takes, without
        robots.txt. Raises FetchError."""
        with self.budget.share(site) as share:
            loaded = await self.loader.load(wanted.url, refresh=refresh, share=share)
            page = await self.reader.read(loaded, wanted.format, wanted.section, wanted.pages)
            return Snapshot(loaded._replace(body=b""), len(loaded.body), page)


@asynccontextmanager
async def open_fetcher(
    settings: Settings, endpoints: Callable[[], Iterable[Endpoint]], blobs: Blobs | None
) -> AsyncIterator[Fetcher]:
    """A fetcher for the time of the block; `endpoints` tells what this server listens on itself, `blobs` are what
    its replicas keep for each other, where there are any."""
    shared = SharedCache(blobs, settings.cache * _MEBIBYTE) if blobs is not None and settings.cache else None
    policy = Policy(settings.rules, endpoints)
    options = ClientOptions(settings.timeout, settings.max_concurrent, settings.ca_file, settings.proxy_url)
    async with (
        open_client(options, policy, SystemResolver()) as client,
        open_reader(settings.readers, settings.reading_time, settings.reading_memory) as reader,
    ):
        rules = LoadRules(
            user_agent=settings.agent,
            timeout=settings.timeout,
            max_bytes=settings.max_bytes,
            max_redirects=settings.max_redirects,
            max_concurrent=settings.max_concurrent,
            max_per_host=settings.max_per_host,
            cache_bytes=settings.cache * _MEBIBYTE,
            ignore_robots=settings.ignore_robots,
            headers=settings.headers,
        )
        yield Fetcher(Loader(client, policy, rules, shared), reader, ByteBudget(_LARGE_PAGES))

"""Loads and reads a page."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import NamedTuple

import anyio

from ..errors import FetchError
from ..load.alternate import find_alternate, is_same_origin
from ..load.cache import fresh_seconds
from ..load.loader import ACCEPT, ACCEPT_MARKDOWN, Loader, LoadRules
from ..load.shared_cache import Blobs, SharedCache
from ..load.throttling import ByteBudget, Stopwatch
from ..network.address_policy import Endpoint, Policy
from ..network.client import ClientOptions, open_client
from ..network.connecting import SystemResolver
from ..network.urls import host_of, parse_url, port_of
from ..read.page import LoadedPage
from ..read.reader import Reader, open_reader
from ..settings import Settings
from .snapshots import PageRequest, Snapshot
from .watch import PageState

_MEBIBYTE = 1024 * 1024
_ALTERNATE_SECONDS = 5.0
"""Seconds to wait for the Markdown version that a page links to."""
_MAX_LOADING_BYTES = 128 * _MEBIBYTE
"""Maximum total size in bytes of pages being loaded, being read, or waiting for either. Together with the memory for
reading, this is less than half of the memory of this server's containers.
"""


class Fetcher(NamedTuple):
    """Fetches pages: loads and reads the page at a URL, and returns a snapshot."""

    loader: Loader
    reader: Reader
    budget: ByteBudget

    async def fetch(
        self,
        request: PageRequest,
        *,
        refresh: bool = False,
        site: Stopwatch | None = None,
        confirmed_after: float | None = None,
    ) -> Snapshot:
        """Return the current page, or a cached version that is still usable. `site` counts the time that the site
        takes, except for robots.txt. With `confirmed_after`, in seconds since 1970, a cached version is used only if
        the site confirmed it after that time. Raises FetchError.
        """
        with self.budget.share(site) as share:
            load = partial(self.loader.load, refresh=refresh, share=share, confirmed_after=confirmed_after)
            loaded = await load(request.url, accept=ACCEPT_MARKDOWN if request.as_markdown else ACCEPT)
            page = await self.reader.read(loaded, request.format, request.section, request.pages)
            snapshot = Snapshot(loaded._replace(body=b""), len(loaded.body), page)
            alternate = find_alternate(loaded) if request.as_markdown and page.kind == "html" else None
            if alternate is None:
                return snapshot
            del loaded
            return await self._fetch_alternate(partial(load, alternate), snapshot) or snapshot

    def normalize(self, url: str) -> tuple[str, str]:
        """Return the normalized URL without a fragment, and its origin. Raises FetchError."""
        parsed = parse_url(url).copy_with(fragment=None)
        return str(parsed), f"{parsed.scheme}://{host_of(parsed)}:{port_of(parsed)}"

    async def check(self, url: str, *, confirmed_after: float | None, refresh: bool) -> PageState:
        """Return the current state of a page for its watchers. Raises FetchError."""
        snapshot = await self.fetch(PageRequest(url), refresh=refresh, confirmed_after=confirmed_after)
        loaded = snapshot.loaded
        if loaded.is_cut:
            raise FetchError("bad_response", "the site's response ended too early")
        lifetime = fresh_seconds(loaded.headers)
        # The remaining lifetime is at least one second, since 0 would mean that the site gives no lifetime.
        remaining_lifetime = lifetime and max(lifetime - max(time.time() - loaded.fetched_at, 0.0), 1.0)
        return PageState(snapshot.version, remaining_lifetime, self.loader.crawl_delay(loaded.url))

    async def _fetch_alternate(self, load: Callable[..., Awaitable[LoadedPage]], page: Snapshot) -> Snapshot | None:
        """Return the Markdown version that a page links to, loaded with `load`. Return None if loading fails or leads
        to another origin. Also return None if the version has less than half of the page's text: the site may have
        sent a substitute for a missing page.
        """
        with anyio.move_on_after(_ALTERNATE_SECONDS), suppress(FetchError):
            loaded = await load(accept=ACCEPT_MARKDOWN)
            if loaded.is_cut:
                return None
            markdown = await self.reader.read(loaded, "markdown")
            is_long_enough = len(markdown.text.strip()) > len(page.page.text.strip()) // 2
            if (
                markdown.kind in ("markdown", "text")
                and is_long_enough
                and is_same_origin(loaded.url, page.loaded.url)
            ):
                named_by = (*page.loaded.redirects, page.loaded.url)
                return Snapshot(loaded._replace(body=b""), len(loaded.body), markdown, named_by=named_by)
        return None


@asynccontextmanager
async def open_fetcher(
    settings: Settings, endpoints: Callable[[], Iterable[Endpoint]], blobs: Blobs | None
) -> AsyncIterator[Fetcher]:
    """Open a fetcher for the duration of the block. `endpoints` returns this server's own endpoints. `blobs` is the
    store of data that the replicas share, if any.
    """
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
        yield Fetcher(Loader(client, policy, rules, shared), reader, ByteBudget(_MAX_LOADING_BYTES))

"""Watched pages, requested as often as their sites allow, once for all clients that subscribe to them.

Theory of the pace. A page is requested with its validators when the time is over for which its site calls it fresh,
and not before `floor`; without such a time it is requested every five minutes. All watched pages of a site together
obey its `Crawl-delay`, or one second. A failing page is requested ever more rarely, and not before `Retry-After` is
over. An answer that a client or another replica got from the site since the last look saves a request.

Only a change of the text counts, and the loss of a page (404, 410), which is reported once. A site may change its
validators with every answer; every tenth look is without them, since a site may answer 304 in spite of a change.
"""

import time
from collections.abc import Awaitable, Callable, Hashable
from typing import NamedTuple, Protocol

import anyio
from anyio import CancelScope
from anyio.abc import TaskGroup

from servers.fetch.errors import GONE, FetchError

MOST_PAGES = 500
"""Pages that are watched at once, of all clients."""
AT_ONCE = 4
"""Concurrent looks: a slow site delays only so many."""
DEFAULT_SECONDS = 300.0
"""Seconds between two looks if the site says nothing about it."""
LONGEST_SECONDS = 24 * 3_600.0
"""Longest time between two looks, whatever the site says."""
SITE_SECONDS = 1.0
"""Average seconds from a look at one page of a site to a look at the next."""
WHOLE_EVERY = 10
"""Every look with this number is without validators."""
_FIRST_SECONDS = 5.0
"""Longest wait of a client for the first look."""
_GONE = "gone"
"""The version of a page that its site no longer has."""
_REFUSED = frozenset({"bad_url", "blocked_host", "blocked_address", "robots", "unsupported_type"})
"""Errors of the page itself, for which it is useless to wait."""


class PageState(NamedTuple):
    """A page at one look."""

    version: str
    """Identifies its text."""
    fresh_seconds: float
    """Seconds that its site still calls it fresh; 0 if it says nothing about that."""
    crawl_delay: float
    """Seconds between two requests that the site's robots.txt asks for."""


class Pages(Protocol):
    """The source of pages. Both methods raise FetchError."""

    def place(self, url: str) -> tuple[str, str]:
        """Return a URL in its one spelling, without a fragment, and its origin."""

    async def look(self, url: str, *, confirmed_after: float | None, refresh: bool) -> PageState:
        """Return the present state of a page. A stored answer counts if its site sent it after `confirmed_after`, in
        seconds since 1970, or for None while it is fresh; none does with `refresh`.
        """


class _Page:
    """A page that is watched."""

    __slots__ = (
        *("failures", "is_told", "looked_at", "looks", "owner", "pause"),
        *("ready", "scope", "site", "version", "woken"),
    )

    def __init__(self, site: str, owner: Hashable) -> None:
        self.site, self.owner = site, owner
        self.version: str | None = None
        self.looks = self.failures = 0
        self.is_told = False
        """True if the difference at the next look has already been reported."""
        self.pause = 0.0
        """Seconds until the next look."""
        self.looked_at: float | None = None
        """The end of the last look, in seconds since 1970."""
        self.ready = anyio.Event()
        """Set after the first look."""
        self.woken = anyio.Event()
        """Set when a look is due at once."""
        self.scope = CancelScope()


class Watcher:
    """Watches pages in `tasks`, and calls `tell` with the URL of each whose text has changed."""

    def __init__(
        self, opened: Callable[[], Awaitable[Pages]], tell: Callable[[str], None], tasks: TaskGroup, floor: float
    ) -> None:
        """Create a watcher; `opened` returns the source of pages, which is loaded with the first one. No page is
        requested twice within `floor` seconds.
        """
        self._opened, self._tell, self._tasks, self._floor = opened, tell, tasks, floor
        self._pages: dict[str, _Page] = {}
        self._looks = anyio.Semaphore(AT_ONCE)

    @property
    def watched(self) -> int:
        """The number of watched pages."""
        return len(self._pages)

    async def watch(self, written: str, owner: Hashable) -> str:
        """Watch a page for `owner`, and return its URL in one spelling after the first look or five seconds.

        Raises FetchError for a page that may not be fetched, and `busy` if too many are watched.
        """
        url, site = (await self._opened()).place(written)
        while (watched := self._pages.get(url)) is not None:
            await watched.ready.wait()
            if self._pages.get(url) is watched:
                return url
        # A client may have as many as are left for others, so that none takes them all.
        remaining = MOST_PAGES - len(self._pages)
        if sum(page.owner == owner for page in self._pages.values()) >= remaining:
            raise FetchError(
                "busy", f"only {remaining} more pages can be watched for all clients", "End some subscriptions."
            )
        page = self._pages[url] = _Page(site, owner)
        is_watched = False
        try:
            with anyio.move_on_after(_FIRST_SECONDS):
                await self._look(url, page)
            is_watched = True
        finally:
            if not is_watched:
                self.unwatch(url)
            page.ready.set()
        self._tasks.start_soon(self._follow, url, page)
        return url

    def unwatch(self, url: str) -> None:
        """End the watch over a page, if there is one, and the requests to its site."""
        page = self._pages.pop(url, None)
        if page is not None:
            page.scope.cancel()

    def catch_up(self, url: str) -> None:
        """Look now at a page that another replica has reported as changed, without another report of the change.

        If it were reported here, two replicas would report a page that changes with each request for ever.
        """
        page = self._pages.get(url)
        if page is not None:
            page.is_told = True
            page.woken.set()

    async def _follow(self, url: str, page: _Page) -> None:
        with page.scope:
            while True:
                with anyio.move_on_after(page.pause):
                    await page.woken.wait()
                page.woken = anyio.Event()
                await self._look(url, page)

    async def _look(self, url: str, page: _Page) -> None:
        """Look at a page once. Raises FetchError at the first look if later ones would fail alike."""
        is_first = page.looks == 0
        page.looks += 1
        try:
            async with self._looks:
                pages = await self._opened()
                is_whole = page.looks % WHOLE_EVERY == 0
                result = await pages.look(url, confirmed_after=page.looked_at, refresh=is_whole)
        except FetchError as error:
            if is_first and error.code in _REFUSED:
                raise
            page.failures += 1
            page.pause = self._back_off(page, error)
            if page.version is not None and error.answered is not None and error.answered.status in GONE:
                self._note(url, page, _GONE)
            return
        finally:
            page.looked_at = time.time()
        page.failures = 0
        of_site = sum(other.site == page.site for other in self._pages.values())
        site_seconds = of_site * max(result.crawl_delay, SITE_SECONDS)
        page.pause = min(max(result.fresh_seconds or DEFAULT_SECONDS, site_seconds, self._floor), LONGEST_SECONDS)
        if is_first:
            page.version = result.version
        else:
            self._note(url, page, result.version)

    def _note(self, url: str, page: _Page, version: str) -> None:
        """Record the present text of a page, and report it if it has changed."""
        has_changed = version != page.version and not page.is_told
        page.version, page.is_told = version, False
        if has_changed:
            self._tell(url)

    def _back_off(self, page: _Page, error: FetchError) -> float:
        """Return the seconds until a page that failed is requested again."""
        requested = 0.0 if error.answered is None else error.answered.retry_after or 0.0
        doubled = max(self._floor, DEFAULT_SECONDS) * 2.0 ** min(page.failures - 1, 20)
        return min(max(requested, doubled), LONGEST_SECONDS)

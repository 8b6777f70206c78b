"""Watches pages: each is requested as often as its site allows, once for all clients that subscribe to it.

A page is requested with its validators when it is no longer fresh according to its site, but at most once in `floor`
seconds; a page without a lifetime is requested every five minutes. The requests for all watched pages of a site
together obey its `Crawl-delay`, or else are at least a second apart on average. A page that fails is requested at
growing intervals, and not before the time in `Retry-After`. No request is needed if a client or another replica has
got a response from the site since the last check. A change of the text is reported, and, once, the loss of the page
(404, 410).

Changed validators don't count as a change, since a site may change them with every response. Every tenth check is
made without validators, since a site may respond 304 despite a change.
"""

import time
from collections.abc import Awaitable, Callable, Hashable
from typing import NamedTuple, Protocol

import anyio
from anyio import CancelScope
from anyio.abc import TaskGroup

from ..errors import GONE, FetchError

MAX_PAGES = 500
"""Maximum number of watched pages, for all clients combined."""
MAX_CONCURRENT_CHECKS = 4
"""Maximum number of concurrent checks; a slow site delays only that many."""
DEFAULT_SECONDS = 300.0
"""Seconds between checks if the site gives no lifetime."""
MAX_SECONDS = 24 * 3_600.0
"""Maximum number of seconds between checks, even if the site allows fewer."""
SITE_SECONDS = 1.0
"""Average seconds between checks of two pages of one site."""
FULL_CHECK_INTERVAL = 10
"""One in this many checks is made without validators."""
_FIRST_SECONDS = 5.0
"""Maximum number of seconds that a client waits for the first check."""
_GONE = "gone"
"""The version of a page that no longer exists."""
_PERMANENT_ERRORS = frozenset({"bad_url", "blocked_host", "blocked_address", "robots", "unsupported_type"})
"""The codes of errors with which every later check of the page would fail too."""


class PageState(NamedTuple):
    """The result of one check of a page."""

    version: str
    """Identifies the text of the page."""
    fresh_seconds: float
    """Seconds for which the page is still fresh; 0 if the site gives no lifetime."""
    crawl_delay: float
    """Seconds between requests that the site's robots.txt demands."""


class Pages(Protocol):
    """The source of pages. Both methods raise FetchError."""

    def normalize(self, url: str) -> tuple[str, str]:
        """Return the normalized URL without a fragment, and its origin."""

    async def check(self, url: str, *, confirmed_after: float | None, refresh: bool) -> PageState:
        """Return the current state of a page. A stored response is used if the site sent it after `confirmed_after`,
        in seconds since 1970, or, if that is None, if it is still fresh. With `refresh`, no stored response is used.
        """


class _Page:
    """A page that is watched."""

    __slots__ = (
        *("failures", "is_reported", "checked_at", "checks", "owner", "pause"),
        *("ready", "scope", "site", "version", "due"),
    )

    def __init__(self, site: str, owner: Hashable) -> None:
        self.site, self.owner = site, owner
        self.version: str | None = None
        self.checks = self.failures = 0
        self.is_reported = False
        """True if the change that the next check will detect has already been reported."""
        self.pause = 0.0
        """Seconds until the next check."""
        self.checked_at: float | None = None
        """The end of the last check, in seconds since 1970."""
        self.ready = anyio.Event()
        """Set after the first check."""
        self.due = anyio.Event()
        """Set when a check is due at once."""
        self.scope = CancelScope()


class Watcher:
    """Watches pages in `tasks`, and calls `report_change` with the URL of each page whose text has changed."""

    def __init__(
        self,
        open_pages: Callable[[], Awaitable[Pages]],
        report_change: Callable[[str], None],
        tasks: TaskGroup,
        floor: float,
    ) -> None:
        """Create a watcher. `open_pages` returns the source of pages, which is opened with the first page. No page is
        requested twice within `floor` seconds.
        """
        self._open_pages, self._report_change, self._tasks, self._floor = open_pages, report_change, tasks, floor
        self._pages: dict[str, _Page] = {}
        self._check_slots = anyio.Semaphore(MAX_CONCURRENT_CHECKS)

    @property
    def watched(self) -> int:
        """The number of watched pages."""
        return len(self._pages)

    async def watch(self, requested_url: str, owner: Hashable) -> str:
        """Watch a page for `owner`, and return its normalized URL after the first check, or after five seconds.

        Raises FetchError for a page that may not be fetched, and with code `busy` if too many are watched.
        """
        url, site = (await self._open_pages()).normalize(requested_url)
        while (watched := self._pages.get(url)) is not None:
            await watched.ready.wait()
            if self._pages.get(url) is watched:
                return url
        # A client may watch at most as many pages as remain for other clients, so that no client takes all of them.
        remaining = MAX_PAGES - len(self._pages)
        if sum(page.owner == owner for page in self._pages.values()) >= remaining:
            raise FetchError(
                "busy",
                f"only {remaining} more pages can be watched by all clients together",
                "End some subscriptions.",
            )
        page = self._pages[url] = _Page(site, owner)
        is_watched = False
        try:
            with anyio.move_on_after(_FIRST_SECONDS):
                await self._check(url, page)
            is_watched = True
        finally:
            if not is_watched:
                self.unwatch(url)
            page.ready.set()
        self._tasks.start_soon(self._check_repeatedly, url, page)
        return url

    def unwatch(self, url: str) -> None:
        """Stop watching and requesting a page, if it is being watched."""
        page = self._pages.pop(url, None)
        if page is not None:
            page.scope.cancel()

    def catch_up(self, url: str) -> None:
        """Check a page at once that another replica has reported as changed, without reporting the change again."""
        page = self._pages.get(url)
        if page is not None:
            # If this replica reported the change too, two replicas would cause each other's checks endlessly for a
            # page that changes with each request.
            page.is_reported = True
            page.due.set()

    async def _check_repeatedly(self, url: str, page: _Page) -> None:
        with page.scope:
            while True:
                with anyio.move_on_after(page.pause):
                    await page.due.wait()
                page.due = anyio.Event()
                await self._check(url, page)

    async def _check(self, url: str, page: _Page) -> None:
        """Check a page once. On the first check, raises FetchError if later checks would fail in the same way."""
        is_first = page.checks == 0
        page.checks += 1
        try:
            async with self._check_slots:
                pages = await self._open_pages()
                is_full = page.checks % FULL_CHECK_INTERVAL == 0
                result = await pages.check(url, confirmed_after=page.checked_at, refresh=is_full)
        except FetchError as error:
            if is_first and error.code in _PERMANENT_ERRORS:
                raise
            page.failures += 1
            requested_seconds = 0.0 if error.response is None else error.response.retry_after or 0.0
            backoff_seconds = max(self._floor, DEFAULT_SECONDS) * 2.0 ** min(page.failures - 1, 20)
            page.pause = min(max(requested_seconds, backoff_seconds), MAX_SECONDS)
            if page.version is not None and error.response is not None and error.response.status in GONE:
                self._record(url, page, _GONE)
            return
        finally:
            page.checked_at = time.time()
        page.failures = 0
        site_pages = sum(other.site == page.site for other in self._pages.values())
        site_seconds = site_pages * max(result.crawl_delay, SITE_SECONDS)
        page.pause = min(max(result.fresh_seconds or DEFAULT_SECONDS, site_seconds, self._floor), MAX_SECONDS)
        if is_first:
            page.version = result.version
        else:
            self._record(url, page, result.version)

    def _record(self, url: str, page: _Page, version: str) -> None:
        """Record the current text of a page, and report it if it has changed."""
        has_changed = version != page.version and not page.is_reported
        page.version, page.is_reported = version, False
        if has_changed:
            self._report_change(url)

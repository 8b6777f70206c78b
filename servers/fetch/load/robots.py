"""Loads and applies a site's rules for programs: robots.txt, as specified by RFC 9309.

`Crawl-delay` is not in the RFC. It is meant for crawlers that visit many pages, so checks of watched pages obey it,
but requests of clients do not. From these, the limit on requests per host and `Retry-After` protect the site.
"""

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import NamedTuple
from weakref import WeakValueDictionary

import anyio
import httpx
from anyio import CapacityLimiter, to_thread
from protego import Protego

from ..errors import FetchError
from ..network.redirects import follow
from ..network.urls import host_of
from .exchange import REDIRECTS, Answer

MAX_BYTES = 500 * 1024
"""Maximum number of bytes of a robots.txt that are read; the rest is ignored."""
MAX_REDIRECTS = 5
CACHE_SECONDS = 24 * 3_600.0
"""Seconds for which rules are cached."""
FAILURE_CACHE_SECONDS = 60.0
"""Seconds until a robots.txt that could not be fetched is requested again."""
MAX_CACHED_HOSTS = 1_000
MAX_CACHED_CHARACTERS = 1_000_000
"""Maximum number of characters of cached rules. Parsed rules take up to about thirty times as much memory."""
INLINE_CHARACTERS = 20_000
"""Maximum number of characters of rules that are evaluated on the event loop instead of in a worker thread."""

GROUP = re.compile(r"\s*user[- ]?agent\s*[:\s]\s*(\*|[A-Za-z_-]*)", re.IGNORECASE)
SITE_FAILURES = {"blocked_host", "blocked_address", "dns", "connect", "tls", "timeout", "busy"}
"""Codes of failures that would affect the page too, so that they are reported as failures of the page."""
OTHER_AGENT = "User-agent: /other"
"""A line with a name that no program uses."""

Fetch = Callable[[httpx.URL], Awaitable[Answer]]


class Rules(NamedTuple):
    """The rules in the robots.txt of one site."""

    parsed: Protego | None
    """The parsed rules; None if everything is allowed, or if nothing is allowed because of `refusal`."""
    refusal: str
    """The reason that nothing is allowed; "" if there is none."""
    expires: float
    """The time at which the rules expire, in seconds of the monotonic clock."""
    size: int = 0
    """Number of characters of the rules."""


class Robots:
    """The rules of sites for the program named `token`. `fetch` requests one URL without following redirects. A
    robots.txt that takes more than `seconds`, redirects included, counts as unreachable.
    """

    def __init__(self, fetch: Fetch, token: str, seconds: float) -> None:
        self._fetch = fetch
        self._token = token
        self._seconds = seconds
        self._cached: OrderedDict[str, Rules] = OrderedDict()
        self._size = 0
        # A single thread, so that malicious rules occupy at most one core, and no thread that others need.
        self._threads = CapacityLimiter(1)
        self._loading: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        """A lock for each robots.txt that is being loaded. Callers that waited for it find the rules in the cache."""

    async def check(self, url: httpx.URL) -> None:
        """Raise FetchError with code `robots` if the site forbids `url`, or the page's own error if the site can't be
        reached.
        """
        robots_url = url.join("/robots.txt")
        rules = self._find(str(robots_url))
        if rules is None:
            async with self._loading.setdefault(str(robots_url), anyio.Lock()):
                rules = self._find(str(robots_url)) or self._store(str(robots_url), await self._load(robots_url))
        if rules.refusal:
            raise _make_refusal(f"{rules.refusal}, so nothing from {host_of(url)} may be fetched (RFC 9309)")
        if rules.parsed is None:
            return
        if rules.size <= INLINE_CHARACTERS:
            is_allowed = rules.parsed.can_fetch(str(url), self._token)
        else:
            # Malicious rules can take a second or two to evaluate.
            is_allowed = await to_thread.run_sync(
                rules.parsed.can_fetch, str(url), self._token, abandon_on_cancel=True, limiter=self._threads
            )
        if not is_allowed:
            raise _make_refusal(
                f"the robots.txt of {host_of(url)} disallows this URL for {self._token or 'programs'}"
            )

    def crawl_delay(self, url: httpx.URL) -> float:
        """Return the seconds between requests that the site of `url` demands, if its rules are cached."""
        rules = self._find(str(url.join("/robots.txt")))
        if rules is None or rules.parsed is None:
            return 0.0
        return rules.parsed.crawl_delay(self._token) or 0.0

    def _find(self, robots_url: str) -> Rules | None:
        rules = self._cached.get(robots_url)
        if rules is None or rules.expires < monotonic():
            return None
        self._cached.move_to_end(robots_url)
        return rules

    def _store(self, robots_url: str, rules: Rules) -> Rules:
        old = self._cached.pop(robots_url, None)
        self._size += rules.size - (old.size if old else 0)
        self._cached[robots_url] = rules
        while len(self._cached) > MAX_CACHED_HOSTS or (self._size > MAX_CACHED_CHARACTERS and len(self._cached) > 1):
            self._size -= self._cached.popitem(last=False)[1].size
        return rules

    async def _load(self, robots_url: httpx.URL) -> Rules:
        answer = None
        with anyio.move_on_after(self._seconds) as scope:
            answer = await self._follow(robots_url)
        if scope.cancelled_caught:
            return _make_unreachable(f"its robots.txt could not be fetched within {self._seconds:g} s")
        if answer is None:
            return _make_unreachable("its robots.txt can't be read")
        if answer.status >= 500 or (300 <= answer.status < 400 and answer.status not in REDIRECTS):
            return _make_unreachable(f"the request for its robots.txt returned HTTP {answer.status}")
        if answer.status >= 300:
            return Rules(None, "", monotonic() + CACHE_SECONDS)
        text = keep_relevant(answer.body, self._token)
        parsed = await to_thread.run_sync(Protego.parse, text, abandon_on_cancel=True, limiter=self._threads)
        return Rules(parsed, "", monotonic() + CACHE_SECONDS, len(text))

    async def _follow(self, robots_url: httpx.URL) -> Answer | None:
        """Return the response after all redirects, or the last redirect if there are too many. Return None if a
        redirect leads to a URL that can't be fetched, and for other failures that don't affect the page."""
        url = robots_url
        try:
            answer = await self._fetch(url)
            for _ in range(MAX_REDIRECTS):
                if answer.status not in REDIRECTS:
                    break
                url = follow(answer.url, answer.headers.get("location"))
                answer = await self._fetch(url)
        except FetchError as error:
            if url == robots_url and error.code in SITE_FAILURES:
                raise
            return None
        return answer


def keep_relevant(body: bytes, token: str) -> str:
    """Replace all user-agent names other than `token` and `*` in a robots.txt with one placeholder, so that the
    parsing cost does not grow with the product of names and rules. Return an empty string if the body is HTML.
    """
    if len(body) >= MAX_BYTES:
        body = body[: body.rfind(b"\n", 0, MAX_BYTES) + 1]
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    if text.lstrip()[:1] == "<":
        return ""
    lines: list[str] = []
    for line in text.splitlines():
        match = GROUP.match(line)
        if match is None:
            lines.append(line)
        else:
            name = match[1].lower()
            lines.append(f"User-agent: {name}" if name and name in ("*", token) else OTHER_AGENT)
    return "\n".join(lines)


def _make_unreachable(reason: str) -> Rules:
    return Rules(None, reason, monotonic() + FAILURE_CACHE_SECONDS)


def _make_refusal(reason: str) -> FetchError:
    return FetchError("robots", reason, "The operator can allow it with --ignore-robots.")

"""Loads pages: one request after another along the redirects, each within all limits."""

import re
from collections.abc import Mapping
from contextlib import nullcontext
from time import time
from typing import NamedTuple

import anyio
import httpx

from shared.tracing.spans import span

from ..errors import GONE, TRY_LATER, ErrorResponse, FetchError
from ..network.address_policy import Policy
from ..network.redirects import Redirects
from ..network.urls import host_of, parse_url, port_of
from ..read.page import LoadedPage
from .cache import Cache, StoredAnswer, make_stored_answer
from .decoding import ACCEPT_ENCODING
from .excerpt import excerpt
from .exchange import REDIRECTS, Answer, Exchange, Limits, retry_after
from .headers import HostHeader, headers_for, product_token
from .refresh import find_refresh_target
from .robots import MAX_BYTES, Robots
from .shared_cache import SharedCache
from .throttling import Pauses, Share, Slots

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
"""The `Accept` header that prefers pages to other forms of the same content."""
ACCEPT_MARKDOWN = "text/markdown,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7"
"""The `Accept` header for requests whose Markdown is shown unchanged."""
EXCERPT_SECONDS = 2.0
"""Maximum wait for the body of an error response, in seconds."""
CLOCK_SKEW_SECONDS = 5.0
"""Seconds by which another replica's clock may be ahead. They are added to the age of its pages."""
ROBOTS_SHARE = 0.5
"""Fraction of the total time that a robots.txt may take."""

_NOT_FOUND_ADVICE = "Fetch a page above it, such as the start page of the site, and follow a link from there."
"""Advice for a page that does not exist."""

MEDIA_TYPE = re.compile(r"\s*([\w!#$&^.+-]{1,127}/[\w!#$&^.+-]{1,127})(?=[\s;,]|$)", re.ASCII)
CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)


class LoadRules(NamedTuple):
    """The operator's settings for loading."""

    user_agent: str
    timeout: float = 20
    """Seconds for a whole load, including all redirects and waits."""
    max_bytes: int = 20_000_000
    """Maximum size of one body, both as sent and decompressed."""
    max_redirects: int = 10
    max_concurrent: int = 50
    max_per_host: int = 10
    cache_bytes: int = 16 * 1024 * 1024
    ignore_robots: bool = False
    headers: tuple[HostHeader, ...] = ()


class _Request(NamedTuple):
    """The parameters of the request for a page."""

    refresh: bool
    share: Share | None
    accept: str
    confirmed_after: float | None
    """A stored response is usable only if it was confirmed after this time; None if it is usable while it is fresh.
    """

    def accepts(self, old: StoredAnswer) -> bool:
        """Return True if the stored response `old` is usable without a request to the site."""
        return old.is_fresh(time()) if self.confirmed_after is None else old.confirmed_at > self.confirmed_after


class Loader:
    """Loads pages with `client`, which must not follow redirects or have a time limit below the total one."""

    def __init__(
        self, client: httpx.AsyncClient, policy: Policy, rules: LoadRules, shared: SharedCache | None = None
    ) -> None:
        """Create a loader. `shared` is the cache that replicas share, if any."""
        self._policy = policy
        self._rules = rules
        self._exchange = Exchange(client, min(EXCERPT_SECONDS, rules.timeout / 4))
        self._slots = Slots(rules.max_concurrent, rules.max_per_host)
        self._pauses = Pauses()
        self._cache = Cache(rules.cache_bytes)
        self._shared = shared
        self._robots = Robots(self._fetch_robots, product_token(rules.user_agent), rules.timeout * ROBOTS_SHARE)

    async def load(
        self,
        url: str,
        *,
        refresh: bool = False,
        share: Share | None = None,
        accept: str = ACCEPT,
        confirmed_after: float | None = None,
    ) -> LoadedPage:
        """Return the page at `url`. With `refresh`, request it from the site itself, bypassing every cache. A large
        page reserves bytes in `share`; the wait for them does not count as the site's time. With `confirmed_after`,
        in seconds since 1970, revalidate a stored response that was confirmed before that time. Raises FetchError.
        """
        redirects = Redirects(parse_url(url), self._rules.max_redirects)
        # Only the host is traced, since the path and the query may be secret.
        attributes = {"http.request.method": "GET", "server.address": redirects.shown_host}
        with span("GET", attributes, kind="client") as request_span:
            page = await self._load(redirects, _Request(refresh, share, accept, confirmed_after))
            request_span.note("http.response.status_code", page.status)
            request_span.note("mcp.fetch.from_cache", page.from_cache)
        return page

    async def _load(self, redirects: Redirects, request: _Request) -> LoadedPage:
        try:
            with anyio.fail_after(self._rules.timeout) as limit:
                if request.share is not None:
                    request.share.limit = limit
                return await self._follow(redirects, request)
        except TimeoutError:
            reason = f"{redirects.shown_host} took longer than {self._rules.timeout:g} s"
        except FetchError as error:
            host = host_of(redirects.url)
            if redirects.shown_host == host:
                raise
            raise error.replace_host(host, redirects.shown_host) from None
        raise FetchError("timeout", reason, TRY_LATER)

    async def _follow(self, redirects: Redirects, request: _Request) -> LoadedPage:
        while True:
            page, from_cache = await self._request_page(redirects, request)
            media_type, charset = _parse_content_type(page.headers)
            if page.status in REDIRECTS:
                redirects.step(page.headers.get("location"))
            elif target := find_refresh_target(str(redirects.url), media_type, page.headers, page.body):
                redirects.step(target)
            else:
                break
        return LoadedPage(
            url=str(redirects.url),
            redirects=tuple(redirects.visited),
            status=page.status,
            headers=page.headers,
            media_type=media_type,
            charset=charset,
            body=page.body,
            received=page.received,
            from_cache=from_cache,
            fetched_at=page.confirmed_at,
            fragment=redirects.fragment,
            is_cut=page.is_cut,
        )

    async def _request_page(self, redirects: Redirects, request: _Request) -> tuple[StoredAnswer, bool]:
        """Return one response, and True if it comes from the cache."""
        url = redirects.url
        self._policy.check_host(host_of(url), port_of(url))
        limits = Limits(self._rules.max_bytes, share=request.share)
        headers = self._make_headers(url, redirects.was_secure, request.accept)
        cookie = redirects.cookies.header_for(url)
        if cookie:
            headers.setdefault("cookie", cookie)
        old = None if request.refresh or cookie else await self._find_cached(str(url), headers)
        if old is not None and request.accepts(old):
            return old, True
        self._pauses.check(_name_site(url))
        if not self._rules.ignore_robots:
            await self._robots.check(url)
        if old is not None:
            confirmed = await self._revalidate(redirects, headers, old, limits)
            if confirmed is not None:
                return confirmed
        # The directive requests an end-to-end reload: no cache on the way may respond (RFC 9111, 5.2.1.4).
        requested = time()
        extra = {"cache-control": "no-cache"} if request.refresh else {}
        answer = await self._send(url, {**headers, **extra}, limits)
        return await self._check_and_store(answer, headers, requested, redirects), False

    async def _find_cached(self, url: str, headers: Mapping[str, str]) -> StoredAnswer | None:
        """Return the response stored here or by other replicas, whichever is newer."""
        remote = None if self._shared is None else await self._shared.find(url, headers)
        local = self._cache.find(url, headers)  # now, since a newer one may have been stored meanwhile
        if remote is None or (local is not None and local.confirmed_at >= remote.confirmed_at):
            return local
        remote = remote._replace(initial_age=remote.initial_age + CLOCK_SKEW_SECONDS)
        self._cache.put(url, remote)
        return remote

    async def _store(self, url: httpx.URL, answer: StoredAnswer, sent: Mapping[str, str]) -> None:
        self._cache.put(str(url), answer)
        if self._shared is None:
            return
        if sent.keys() & {header.name.lower() for header in self._rules.headers}:
            # The response may depend on these credentials, and other replicas may not have them, so it is not shared.
            await self._shared.drop(str(url))
        else:
            await self._shared.put(str(url), answer)

    async def _revalidate(
        self, redirects: Redirects, headers: Mapping[str, str], old: StoredAnswer, limits: Limits
    ) -> tuple[StoredAnswer, bool] | None:
        """Return the stored response if it is still valid, or the one that the site sends instead; None if the page
        must be requested unconditionally.
        """
        conditions = old.conditions()
        if not conditions:
            return None
        requested = time()
        answer = await self._send(redirects.url, {**headers, **conditions}, limits)
        if answer.status != 304:
            return await self._check_and_store(answer, headers, requested, redirects), False
        confirmed = old.confirm(answer, (requested, time()))
        if confirmed is None:
            return None
        await self._store(redirects.url, confirmed, headers)
        return confirmed, True

    async def _check_and_store(
        self, answer: Answer, sent: Mapping[str, str], requested: float, redirects: Redirects
    ) -> StoredAnswer:
        """Store a response and its cookies, if they may be stored. Raises FetchError if it is neither a page nor a
        redirect."""
        if answer.status >= 400:
            if answer.status in GONE:
                url = str(answer.url)
                self._cache.drop(url)
                if self._shared is not None:
                    await self._shared.drop(url)
            status, site = answer.status, _name_site(answer.url)
            wait = retry_after(answer.headers.get("retry-after"), time())
            if wait is not None and status in {429, 503}:
                self._pauses.add(site, status, wait)
            text = excerpt(answer.body, *_parse_content_type(answer.headers))
            suggestion = _NOT_FOUND_ADVICE if status in GONE and answer.url.path != "/" else ""
            response = ErrorResponse(status, wait, text)
            raise FetchError("status", f"{host_of(answer.url)} answered {status}", suggestion, response)
        if answer.status in {206, 304, 305, 306}:
            reason = f"{host_of(answer.url)} returned {answer.status}, which was not requested"
            raise FetchError("bad_response", reason)
        page = make_stored_answer(answer, sent, (requested, time()))
        # Without the cookie, the site would send something else. A redirect is stored without its cookie.
        depends_on_cookie = redirects.cookies.header_for(answer.url) or (
            answer.status in REDIRECTS and "set-cookie" in answer.headers
        )
        redirects.cookies.receive(answer.url, answer.headers)
        if not depends_on_cookie:
            await self._store(answer.url, page, sent)
        return page

    def crawl_delay(self, url: str) -> float:
        """Return the seconds between requests that the site of `url` demands of programs; 0 if none."""
        return 0.0 if self._rules.ignore_robots else self._robots.crawl_delay(parse_url(url))

    def _make_headers(self, url: httpx.URL, was_secure: bool, accept: str) -> dict[str, str]:
        headers = {"user-agent": self._rules.user_agent, "accept": accept, "accept-encoding": ACCEPT_ENCODING}
        if was_secure and url.scheme != "https":
            return headers
        return headers | headers_for(self._rules.headers, url.scheme, host_of(url), port_of(url))

    async def _send(self, url: httpx.URL, headers: Mapping[str, str], limits: Limits) -> Answer:
        timer = nullcontext() if limits.share is None else limits.share.site.measure()
        async with self._slots.occupy(host_of(url)):
            with timer:
                return await self._exchange.get(url, headers, limits)

    async def _fetch_robots(self, url: httpx.URL) -> Answer:
        headers = self._make_headers(url, True, "text/plain,*/*;q=0.8")
        return await self._send(url, headers, Limits(MAX_BYTES, cut=True))


def _name_site(url: httpx.URL) -> str:
    return f"{host_of(url)}:{port_of(url)}"


def _parse_content_type(headers: Mapping[str, str]) -> tuple[str, str | None]:
    """Return the media type in lowercase, or "", and the charset as written."""
    text = headers.get("content-type", "")
    media_type, charset = MEDIA_TYPE.match(text), CHARSET.search(text)
    return media_type[1].lower() if media_type else "", charset[1] if charset else None

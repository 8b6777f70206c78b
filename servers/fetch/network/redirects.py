"""Redirect targets, the maximum number of redirects in one load, and the cookies set along them."""

from urllib.parse import urljoin

from httpx import URL

from ..errors import FetchError
from .cookies import Cookies
from .urls import host_of, parse_url


def follow(url: URL, location: str | None) -> URL:
    """Return the target of a redirect from `url` to `location`. Raises FetchError, which contains no
    part of `location`."""
    if location is None:
        raise FetchError("bad_response", f"{host_of(url)} redirects without a location")
    try:
        return parse_url(urljoin(str(url), location.strip()))
    except ValueError:
        reason = "it is malformed"
    except FetchError as error:
        reason = error.reason
    raise FetchError("bad_url", f"{host_of(url)} redirects to a URL that can't be fetched: {reason}")


class Redirects:
    """The URLs of one load, from the requested one to the final one."""

    def __init__(self, first: URL, limit: int) -> None:
        self.url = first.copy_with(fragment=None)
        self.fragment = first.fragment
        """The fragment of the last URL that had one (RFC 9110, 10.2.2)."""
        self.visited: list[str] = []
        self.cookies = Cookies()
        self._requests = {(str(self.url), "")}
        """The URLs that were requested, each with its cookies: a site may redirect back to the page that sets one."""
        self.was_secure = first.scheme == "https"
        """True once a URL used https. From then on, secrets are only sent over https."""
        self._limit = limit
        self._requested_host = host_of(first)

    @property
    def shown_host(self) -> str:
        """The current host for error messages, in quotes if it comes from a redirect."""
        host = host_of(self.url)
        return host if host == self._requested_host else f'"{host}"'

    def step(self, location: str | None) -> None:
        """Follow a redirect to its target. Raises FetchError."""
        target = follow(self.url, location)
        self.visited.append(str(self.url))
        self.fragment = target.fragment or self.fragment
        self.url = target.copy_with(fragment=None)
        request = (str(self.url), self.cookies.header_for(self.url))
        if request in self._requests:
            suggestion = "Sites that expect a cookie of an earlier visit or of a script do this. Fetch another page."
            raise FetchError("too_many_redirects", "the site redirects in a loop", suggestion)
        self._requests.add(request)
        if len(self.visited) > self._limit:
            raise FetchError("too_many_redirects", f"the site redirects more than {self._limit} times")
        self.was_secure = self.was_secure or self.url.scheme == "https"

"""Where a redirect leads."""

from urllib.parse import urljoin

import httpx

from servers.fetch.errors import FetchError
from servers.fetch.loading.exchange import Answer
from servers.fetch.network.urls import parse_url

__all__ = ["Chain", "host_of", "next_url", "port_of"]


def host_of(url: httpx.URL) -> str:
    """The host in ASCII, an address of IPv6 without brackets."""
    return url.raw_host.decode("ascii")


def port_of(url: httpx.URL) -> int:
    """The port, that of the scheme where none is written."""
    return url.port or (443 if url.scheme == "https" else 80)


def next_url(answer: Answer) -> httpx.URL:
    """Where `answer` sends one. Raises FetchError, which repeats nothing of it."""
    return _joined(answer.url, answer.headers.get("location"))


class Chain:
    """The URLs of one load, from the one that was asked for to the one that answers."""

    def __init__(self, first: httpx.URL, most: int) -> None:
        self.url = first.copy_with(fragment=None)
        self.fragment = first.fragment
        """Of the last URL that had one: RFC 9110, 10.2.2."""
        self.passed: list[str] = []
        self.was_safe = first.scheme == "https"
        """Whether a step came by https: what is secret is not sent without it from there on."""
        self._most = most
        self._asked_host = host_of(first)

    @property
    def shown_host(self) -> str:
        """The host, in quotes where it is the word of the site that redirects."""
        host = host_of(self.url)
        return host if host == self._asked_host else f'"{host}"'

    def step(self, location: str | None) -> None:
        """Goes on to where a redirect leads. Raises FetchError."""
        following = _joined(self.url, location)
        self.passed.append(str(self.url))
        self.fragment = following.fragment or self.fragment
        self.url = following.copy_with(fragment=None)
        if str(self.url) in self.passed:
            suggestion = "Sites do so that want a cookie, which is never kept here."
            raise FetchError("too_many_redirects", "the site redirects in a circle", suggestion)
        if len(self.passed) > self._most:
            raise FetchError("too_many_redirects", f"the site redirects more than {self._most} times")
        self.was_safe = self.was_safe or self.url.scheme == "https"


def _joined(url: httpx.URL, location: str | None) -> httpx.URL:
    if location is None:
        raise FetchError("bad_response", f"{host_of(url)} redirects without saying where to")
    try:
        return parse_url(urljoin(str(url), location.strip()))
    except ValueError:
        reason = "it is malformed"
    except FetchError as error:
        reason = error.reason
    raise FetchError("bad_url", f"{host_of(url)} redirects to what can't be fetched: {reason}")

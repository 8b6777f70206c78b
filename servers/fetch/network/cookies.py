"""Cookies of one load. Some sites set a cookie with a redirect, and redirect in a loop without it.

They are sent as in browsers (RFC 6265), but only along the redirects of one load.
"""

import httpx


class Cookies:
    """The cookies that the sites of one load have set."""

    def __init__(self) -> None:
        self._jar = httpx.Cookies()

    def receive(self, url: httpx.URL, headers: httpx.Headers) -> None:
        """Store the cookies that the response from `url` sets."""
        if "set-cookie" in headers:
            self._jar.extract_cookies(httpx.Response(200, headers=headers, request=_make_request(url)))

    def header_for(self, url: httpx.URL) -> str:
        """Return the `Cookie` header of a request for `url`; "" if there are no cookies for it, or none that can be
        sent."""
        if not self._jar:
            return ""
        request = _make_request(url)
        try:
            self._jar.set_cookie_header(request)
        except UnicodeEncodeError:
            return ""
        header = str(request.headers.get("cookie", ""))
        return header if header.isprintable() else ""


def _make_request(url: httpx.URL) -> httpx.Request:
    # httpx would decode the host for its own header, which fails for some names that exist in the DNS.
    return httpx.Request("GET", url, headers={"host": url.netloc.decode("ascii")})

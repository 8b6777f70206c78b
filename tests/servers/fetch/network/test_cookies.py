"""Which cookies are sent to which URL."""

import httpx
import pytest

from servers.fetch.network.cookies import Cookies

FROM = httpx.URL("https://www.bakery.example/shop/start")


@pytest.mark.parametrize(
    ("cookie", "url", "sent"),
    [
        ("a=1", "https://www.bakery.example/shop/bread", "a=1"),
        ("a=1", "https://www.bakery.example/", ""),
        ("a=1; Path=/", "https://www.bakery.example/", "a=1"),
        ("a=1; Path=/", "https://bakery.example/", ""),
        ("a=1; Path=/; Domain=bakery.example", "https://mill.bakery.example/", "a=1"),
        ("a=1; Path=/; Domain=mill.example", "https://mill.example/", ""),
        ("a=1; Path=/; Secure", "http://www.bakery.example/", ""),
        ("a=1; Path=/; Max-Age=0", "https://www.bakery.example/", ""),
        ("a=ü; Path=/", "https://www.bakery.example/", ""),
        ("a=\x01; Path=/", "https://www.bakery.example/", ""),
    ],
)
def test_a_cookie_is_sent_as_in_browsers(cookie: str, url: str, sent: str) -> None:
    cookies = Cookies()
    cookies.receive(FROM, httpx.Headers([(b"set-cookie", cookie.encode())]))
    assert cookies.header_for(httpx.URL(url)) == sent


def test_a_host_that_httpx_cannot_decode_has_cookies() -> None:
    cookies = Cookies()
    url = httpx.URL("https://xn--zzzzzzzzzz.example/")
    cookies.receive(url, httpx.Headers({"set-cookie": "a=1"}))
    assert cookies.header_for(url) == "a=1"

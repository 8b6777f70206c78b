"""Parsing and normalizing URLs."""

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.network.redirects import follow
from servers.fetch.network.urls import MAX_URL, parse_url


def test_a_url_is_normalized() -> None:
    rows = [
        ("http://example.com", "http://example.com"),
        ("  https://example.com/a \n", "https://example.com/a"),
        ("HTTP://Example.COM:80/A", "http://example.com/A"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:/", "https://example.com/"),
        ("https://example.com:08443/", "https://example.com:8443/"),
        ("https://example.com./", "https://example.com/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
        ("https://faß.example/", "https://xn--fa-hia.example/"),
        ("https://例え。テスト/", "https://xn--r8jz45g.xn--zckzah/"),
        ("https://under_score.example.com/", "https://under_score.example.com/"),
        ("http://0x5db8d70e/", "http://93.184.215.14/"),
        ("http://[2606:4700:0:0::1111]:8080/", "http://[2606:4700::1111]:8080/"),
        ("https://example.com/a b/ü?q=ü&r=a b", "https://example.com/a%20b/%C3%BC?q=%C3%BC&r=a%20b"),
        ("https://example.com?q", "https://example.com?q"),
        ("https://example.com/a/../b/./c", "https://example.com/b/c"),
        ("https://example.com/a@b:c\\d", "https://example.com/a@b:c\\d"),
    ]
    assert [(written, str(parse_url(written)).removesuffix("/")) for written, _ in rows] == [
        (written, understood.removesuffix("/")) for written, understood in rows
    ]


def test_the_fragment_is_separate_from_the_path() -> None:
    url = parse_url("https://example.com/page?a=1#part")
    assert (url.raw_path, url.fragment) == (b"/page?a=1", "part")


INVALID = "the URL is not valid"
SCHEME = "only http and https URLs can be fetched"
SLASHES = "two slashes are missing after the scheme"
HOST = "the host is neither a name nor an address"
PORT = "the port is not a number from 1 to 65535"
CHARACTERS = "the URL contains characters that are not allowed in a URL"
USERINFO = "the URL contains a user name or password, which is not sent"


def get_refusal(url: str) -> FetchError:
    with pytest.raises(FetchError) as caught:
        parse_url(url)
    assert caught.value.code == "bad_url"
    return caught.value


def test_an_unsupported_url_is_refused() -> None:
    rows = {
        INVALID: ["", "example.com/page", "//example.com/", "example.com:80/page", "/etc/passwd"],
        SCHEME: [
            "file:///etc/passwd",
            "ftp://example.com/",
            "javascript:alert(1)",
            "data:text/html,x",
            "gopher://a:70/_",
        ],
        SLASHES: ["http:example.com", "http:/example.com", "http:\\\\example.com"],
        HOST: [
            "http://example.com\\/",
            "http:///example.com",
            "http://exa mple.com/",
            "http://example..com/",
            f"http://{'a' * 64}.com/",
            f"http://{'a.' * 127}com/",
        ],
        PORT: [f"http://example.com:{port}/" for port in ("0", "65536", "+80", "８０")],
        CHARACTERS: ["http://example.com/\x00", "http://exam\nple.com/", "http://example.com/\ud800"],
        f"the URL is longer than {MAX_URL} characters": [f"http://example.com/{'a' * MAX_URL}"],
        "the host is not a valid DNS name": ["http://☃☃.example\u202e/"],
    }
    assert {
        reason: [url for url in urls if get_refusal(url).reason == reason] for reason, urls in rows.items()
    } == rows


def test_an_ipv6_address_without_brackets_is_refused_with_advice() -> None:
    message = "the host contains a colon. Enclose an IPv6 address in brackets"
    assert str(get_refusal("http://2606:4700::1111/")) == message


def test_a_refusal_does_not_repeat_credentials() -> None:
    rows = {
        "https://user:hunter2@example.com/": USERINFO,
        "https://hunter2@example.com/": USERINFO,
        "https://:hunter2@example.com/": USERINFO,
        "https://@example.com/": USERINFO,
        "https://user:hunter2@/": USERINFO,
        "https://user:hunter2@127.0.0.1:99999/": USERINFO,
        "https://user:hunter2@example.com\\@other.example/": USERINFO,
        "ftp://user:hunter2@example.com/": SCHEME,
        "https://user%3Ahunter2%40example.com/": HOST,
        "https://user:hunter2%40example.com/": PORT,
    }
    assert {url: get_refusal(url).reason for url in rows} == rows
    assert "hunter2" not in " ".join(f"{one!s}{one!r}{one.args}" for one in map(get_refusal, rows))


def test_the_length_limit_applies_to_the_encoded_url() -> None:
    parse_url("https://example.com/" + "\U0001f600" * 1_000)
    with pytest.raises(FetchError, match=f"longer than {MAX_URL} characters"):
        parse_url("https://example.com/" + "\U0001f600" * 1_400)


def test_a_redirect_to_a_malformed_url_says_so_of_the_url() -> None:
    with pytest.raises(FetchError) as refused:
        follow(parse_url("https://a.test/"), "//[x]/")
    assert refused.value.reason == "a.test redirects to a URL that can't be fetched: it is malformed"

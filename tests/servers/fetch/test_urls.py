"""URLs as they are written, and as they are understood."""

import random
from contextlib import suppress

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.addresses import is_public, parse_address
from servers.fetch.network.connecting import CheckedBackend
from servers.fetch.network.urls import MAX_URL, parse_url
from tests.servers.fetch.reaching import Recorder


@pytest.mark.parametrize(
    ("written", "understood"),
    [
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
    ],
)
def test_a_url_has_one_form(written: str, understood: str) -> None:
    assert str(parse_url(written)).removesuffix("/") == understood.removesuffix("/")


def test_the_fragment_is_kept_apart() -> None:
    url = parse_url("https://example.com/page?a=1#part")
    assert (url.raw_path, url.fragment) == (b"/page?a=1", "part")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "the URL is not valid"),
        ("example.com/page", "the URL is not valid"),
        ("//example.com/", "the URL is not valid"),
        ("example.com:80/page", "the URL is not valid"),
        ("/etc/passwd", "the URL is not valid"),
        ("file:///etc/passwd", "only http and https URLs can be fetched"),
        ("ftp://example.com/", "only http and https URLs can be fetched"),
        ("javascript:alert(1)", "only http and https URLs can be fetched"),
        ("data:text/html,x", "only http and https URLs can be fetched"),
        ("gopher://127.0.0.1:70/_", "only http and https URLs can be fetched"),
        ("http:example.com", "two slashes are missing after the scheme"),
        ("http:/example.com", "two slashes are missing after the scheme"),
        ("http:\\\\example.com", "two slashes are missing after the scheme"),
        ("http://example.com\\/", "the host is neither a name nor an address"),
        ("http:///example.com", "the host is neither a name nor an address"),
        ("http://exa mple.com/", "the host is neither a name nor an address"),
        ("http://example..com/", "the host is neither a name nor an address"),
        (f"http://{'a' * 64}.com/", "the host is neither a name nor an address"),
        (f"http://{'a.' * 127}com/", "the host is neither a name nor an address"),
        ("http://example.com:0/", "the port is not a number from 1 to 65535"),
        ("http://example.com:65536/", "the port is not a number from 1 to 65535"),
        ("http://example.com:+80/", "the port is not a number from 1 to 65535"),
        ("http://example.com:８０/", "the port is not a number from 1 to 65535"),
        ("http://example.com/\x00", "the URL has characters in it that no URL may have"),
        ("http://exam\nple.com/", "the URL has characters in it that no URL may have"),
        ("http://example.com/\ud800", "the URL has characters in it that no URL may have"),
        (f"http://example.com/{'a' * MAX_URL}", f"the URL is longer than {MAX_URL} characters"),
        ("http://☃☃.example\u202e/", "the host is not a valid DNS name"),
    ],
)
def test_what_is_no_url_to_fetch_is_refused(url: str, reason: str) -> None:
    with pytest.raises(FetchError) as caught:
        parse_url(url)
    assert (caught.value.code, caught.value.reason) == ("bad_url", reason)


def test_an_address_without_brackets_is_told_of_them() -> None:
    with pytest.raises(FetchError) as caught:
        parse_url("http://2606:4700::1111/")
    assert str(caught.value) == "the host has a colon in it. Write an address of IPv6 in brackets"


USERINFO = "the URL has a user name or password in it, which is not sent"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://user:hunter2@example.com/", USERINFO),
        ("https://hunter2@example.com/", USERINFO),
        ("https://:hunter2@example.com/", USERINFO),
        ("https://@example.com/", USERINFO),
        ("https://user:hunter2@/", USERINFO),
        ("https://user:hunter2@127.0.0.1:99999/", USERINFO),
        ("https://user:hunter2@example.com\\@other.example/", USERINFO),
        ("ftp://user:hunter2@example.com/", "only http and https URLs can be fetched"),
        ("https://user%3Ahunter2%40example.com/", "the host is neither a name nor an address"),
        ("https://user:hunter2%40example.com/", "the port is not a number from 1 to 65535"),
    ],
)
def test_h11_credentials_are_not_repeated(url: str, reason: str) -> None:
    with pytest.raises(FetchError) as caught:
        parse_url(url)
    assert (caught.value.code, caught.value.reason) == ("bad_url", reason)
    assert "hunter2" not in str(caught.value)


def test_a_url_may_not_grow_too_long_by_being_encoded() -> None:
    parse_url("https://example.com/" + "\U0001f600" * 1_000)
    with pytest.raises(FetchError, match=f"longer than {MAX_URL} characters"):
        parse_url("https://example.com/" + "\U0001f600" * 1_400)


PIECES = "http:// https:// 127.0.0.1 127 0x7f 0177 2130706433 １ 。 . [ ] ::1 ::ffff: 64:ff9b:: fe80:: : %".split()  # noqa: SIM905
PIECES += "25 @ / ? # a é example.com 99999 80 - _ xn-- localhost ⓛ 8.8.8.8 2606:4700::".split()  # noqa: SIM905
PIECES += ["\\", " ", "\t", "\x00", "\ud800", "\u0130", "\u200b", "\u00ad", "\u202e", "\U000e0041"]


async def reach(text: str, backend: CheckedBackend) -> bool:
    """Whether it is a URL. If so it is the same when read again, and a connection is tried."""
    try:
        url = parse_url(text)
    except FetchError as error:
        return error.code != "bad_url"
    assert parse_url(str(url)) == url
    assert not url.userinfo
    with suppress(FetchError):
        await backend.connect_tcp(url.raw_host.decode("ascii"), url.port or 80)
    return True


@pytest.mark.parametrize("times", [500, pytest.param(20_000, marks=pytest.mark.slow)])
async def test_whatever_is_written_leads_nowhere_private(times: int) -> None:
    chance, recorder = random.Random(7), Recorder()
    backend = CheckedBackend(Policy(Rules()), EverythingPrivate(), recorder)
    urls = 0
    for _ in range(times):
        pieces = chance.choices(PIECES, k=chance.randint(1, 8))
        urls += await reach("http://" + "".join(pieces), backend)
    assert urls > times / 20
    assert recorder.reached
    assert all(is_public(parse_address(address)) for address, _ in recorder.reached)


class EverythingPrivate:
    async def resolve(self, host: str) -> list[str]:
        return ["10.0.0.1"]

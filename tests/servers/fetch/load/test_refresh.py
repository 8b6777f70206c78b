"""Meta refreshes without delay, which are followed like redirects."""

import pytest

from servers.fetch.load.refresh import find_refresh_target
from tests.servers.fetch.loaders import opened_loader, refused
from tests.servers.fetch.sites import answer, opened_site

URL = "https://example.com/a/b"


def target(page: str, header: str = "", media_type: str = "text/html") -> str | None:
    return find_refresh_target(URL, media_type, {"refresh": header} if header else {}, page.encode())


@pytest.mark.parametrize(
    "content",
    ["0; url=/x", "0;URL='/x'", "0,url=/x", "0 url = /x", "0;/x", "0.5; url=/x", ' 0 ; url="/x" ', "0; url=/x#part"],
)
def test_a_refresh_without_delay_has_a_target(content: str) -> None:
    quote = "'" if '"' in content else '"'
    assert (target(f"<meta http-equiv=refresh content={quote}{content}{quote}>") or "").partition("#")[0] == (
        "https://example.com/x"
    )
    assert target("", content) is not None


def test_the_target_is_decoded_and_resolved_against_the_base() -> None:
    page = '<base href="/c/"><META CONTENT="0;url=x?a=1&amp;b=2" HTTP-EQUIV="Refresh">'
    assert target(page) == "https://example.com/c/x?a=1&b=2"


def test_other_refreshes_have_no_target() -> None:
    for page in (
        '<meta http-equiv=refresh content="5; url=/x">',
        '<meta http-equiv=refresh content="0">',
        '<meta http-equiv=refresh content="url=/x">',
        '<meta http-equiv=refresh content="0; url=b">',
        '<meta http-equiv=refresh content="0; url=#part">',
        '<meta http-equiv=refresh content="0; url=http://[">',
        '<noscript><meta http-equiv=refresh content="0; url=/x"></noscript>',
        '<!-- <meta http-equiv=refresh content="0; url=/x"> -->',
        "<script>'<meta http-equiv=refresh content=0;/x>'</script>",
    ):
        assert target(page) is None, page
    assert target('<meta http-equiv=refresh content="0; url=/x">', media_type="text/plain") is None


async def test_a_refresh_follows_the_rules_of_redirects() -> None:
    page = answer('<meta http-equiv="refresh" content="0; url=/b">', content_type="text/html")
    outside = answer('<meta http-equiv="refresh" content="0; url=http://10.0.0.1/">', content_type="text/html")
    circle = answer('<meta http-equiv="refresh" content="0; url=/d">', content_type="text/html")
    back = answer('<meta http-equiv="refresh" content="0; url=/c">', content_type="text/html")
    routes = {"/a": page, "/b": answer("page", content_type="text/html"), "/o": outside, "/c": circle, "/d": back}
    async with opened_site(routes) as site, opened_loader() as loader:
        loaded = await loader.load(site.url("/a"))
        assert (loaded.url, loaded.redirects, loaded.body) == (site.url("/b"), (site.url("/a"),), b"page")
        assert (await refused(loader, site.url("/o"))).code == "blocked_address"
        assert (await refused(loader, site.url("/c"))).code == "too_many_redirects"
    async with opened_site(routes) as site, opened_loader(max_redirects=0) as loader:
        assert (await refused(loader, site.url("/a"))).code == "too_many_redirects"

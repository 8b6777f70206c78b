"""Loading a page: what comes back, and what is said where none does."""

from tests.servers.fetch.loaders import AGENT, opened_loader, refused
from tests.servers.fetch.sites import answer, opened_site


async def test_a_page_comes_with_its_facts() -> None:
    page = answer("<p>Hello", content_type="Text/HTML; charset=Latin-1")
    async with opened_site({"/a": page}) as site, opened_loader() as loader:
        loaded = await loader.load(site.url("/a#part"))
    assert (loaded.url, loaded.fragment, loaded.redirects) == (site.url("/a"), "part", ())
    assert (loaded.status, loaded.media_type, loaded.charset) == (200, "text/html", "Latin-1")
    assert (loaded.body, loaded.received, loaded.from_cache) == (b"<p>Hello", 8, False)
    assert site.asked[0].headers["user-agent"] == AGENT
    assert site.asked[0].headers["accept-encoding"] == "gzip, deflate, br, zstd"


async def test_an_error_tells_the_status_and_what_the_site_said() -> None:
    said = answer("<script>x</script><h1>Not&nbsp;here</h1> <p>Ask elsewhere.", 404, content_type="text/html")
    async with opened_site({"/a": said}) as site, opened_loader() as loader:
        error = await refused(loader, site.url("/a"))
    assert (error.code, error.answered.status, error.answered.excerpt) == ("status", 404, "Not here Ask elsewhere.")

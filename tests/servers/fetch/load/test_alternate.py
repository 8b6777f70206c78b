"""Links from a page to its Markdown version."""

import pytest

from servers.fetch.load.alternate import find_alternate
from servers.fetch.read.page import LoadedPage

URL = "https://site.example/folder/page"


def find_in_page(body: str = "", link: str = "") -> str | None:
    return find_alternate(LoadedPage(URL, (), 200, {"link": link}, "text/html", None, body.encode(), 0, False, 0.0))


@pytest.mark.parametrize(
    "body",
    [
        '<link rel="alternate" type="text/markdown" href="page.md">',
        "<LINK href='page.md' TYPE='Text/Markdown; charset=utf-8' REL='x ALTERNATE'/>",
        '<base href="/folder/"><link rel=alternate type=text/markdown href=page.md#part>',
        '<link rel="alternate" type="text/markdown" href="//site.example:443/folder/page.md">',
    ],
)
def test_a_markdown_link_in_the_head_is_recognized_in_every_spelling(body: str) -> None:
    assert find_in_page(f"<html><head>{body}</head><body>") == "https://site.example/folder/page.md"


def test_the_link_header_precedes_link_elements() -> None:
    link = '</a>; rel="next", <page.md>; rel="alternate"; type="text/markdown"'
    assert (
        find_in_page('<link rel=alternate type=text/markdown href="other.md">', link)
        == "https://site.example/folder/page.md"
    )


@pytest.mark.parametrize(
    "body",
    [
        '<link rel="alternate" type="application/rss+xml" href="feed">',
        '<link rel="stylesheet" type="text/markdown" href="page.md">',
        '<link rel="alternate" type="text/markdown" href="https://other.example/page.md">',
        '<link rel="alternate" type="text/markdown" href="http://site.example/folder/page.md">',
        '<link rel="alternate" type="text/markdown" href="https://site.example:8443/page.md">',
        '<link rel="alternate" type="text/markdown" href="page#top">',
        '<link rel="alternate" type="text/markdown" href="http://[">',
        '<!-- <link rel="alternate" type="text/markdown" href="page.md"> -->',
        '<script>"<link rel=alternate type=text/markdown href=page.md>"</script>',
        '<body><link rel="alternate" type="text/markdown" href="page.md">',
        "x" * 65_536 + '<link rel="alternate" type="text/markdown" href="page.md">',
    ],
)
def test_other_links_and_other_origins_are_ignored(body: str) -> None:
    assert find_in_page(body) is None

"""The data of the app that shows a page: title, headings, links and resource."""

from typing import Any

import pytest

from servers.fetch.pages.contents import list_headings, list_links
from servers.fetch.server import app
from shared.server.results import MAX_VIEW
from tests.servers.fetch.sites import answer, opened_site
from tests.servers.hosts import shown, size_of, view_of
from tests.shared.server.peer import ERAS

PAGE = """<html><title>Brot &amp; Salz</title><main><h1>Brot</h1><p>Ein <a href="/salz">Salz</a> und Mehl.</p>
<h2>Der <em>Teig</em></h2><p>Er ruht.</p></main></html>"""
LONG = f"<html><title>Lang</title><main><h1>A</h1><p>{'Wort ' * 300}</p><h2>B</h2><p>Ende.</p></main></html>"


async def view_page(html: str, era: str = "2025-11-25", **arguments: Any) -> tuple[Any, str]:
    """Returns the data that the app gets of a page, and its URL."""
    page = answer(html, content_type="text/html; charset=utf-8")
    async with opened_site({"/": page}) as site, shown(app, "--allow-private", "127.0.0.1:*", era=era) as (host, _):
        return await view_of(host, "fetch", url=site.url(), **arguments), site.url()


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
async def test_the_view_has_url_title_links_and_resource(era: str) -> None:
    view, url = await view_page(PAGE, era)
    assert view == {
        "url": url,
        "title": "Brot & Salz",
        "links": [{"text": "Salz", "url": f"{url}salz"}],
        "resource": url,
    }


@pytest.mark.slow
async def test_the_view_of_a_cut_page_has_its_outline() -> None:
    view, _ = await view_page(LONG, max_length=100)
    assert view["outline"] == [{"level": 1, "text": "A"}, {"level": 2, "text": "B"}]


@pytest.mark.slow
async def test_the_view_of_another_format_has_no_resource() -> None:
    for arguments in ({"format": "text"}, {"raw": True}, {"section": "Brot"}):
        view, _ = await view_page(PAGE, **arguments)
        assert "resource" not in view


def test_list_headings_skips_code_blocks() -> None:
    text = (
        "# A *b* `c_d` [e](https://x.y/a) \\# f\n\ntext\n# \n```\n# no\n```\n~~~~\n# no\n```\n# no\n~~~~~\n### g_h_i"
    )
    assert list_headings(text) == [
        {"level": 1, "text": "A b c_d e # f"},
        {"level": 1, "text": ""},
        {"level": 3, "text": "g_h_i"},
    ]


def test_list_links_lists_each_web_link_once() -> None:
    text = (
        '[a\\]b](https://x/1) ![i](https://img/1) [![alt](https://img/2 "t")](https://x/2) [c](ftp://x) '
        "[d](mailto:a@b.c) [again](https://x/1) [](http://x/3)"
    )
    assert list_links(text) == [
        {"text": "a]b", "url": "https://x/1"},
        {"text": "alt", "url": "https://x/2"},
        {"text": "", "url": "http://x/3"},
    ]


@pytest.mark.parametrize(
    "text",
    [
        "".join(
            f"# {'heading ' * 50}{n}\n\n[{'link ' * 50}{n}](https://example.org/{'x' * 1_900}{n})\n"
            for n in range(100)
        ),
        "# \U0001f600\n[\U0001f600](https://x/)\n" * 9_000,
    ],
    ids=["long", "many"],
)
def test_headings_and_links_beyond_max_view_are_left_out(text: str) -> None:
    parts = {"outline": list_headings(text), "links": list_links(text)}
    assert all(parts.values())
    assert size_of(parts) <= MAX_VIEW


def test_hostile_text_takes_linear_time() -> None:
    # A pattern that searches the rest of the line at each character would take an hour.
    for part in ("![](", "[", "[a](http://x ", "_", "\\", "# _", "`", '[a](http://x "'):
        for text in (part * (100_000 // len(part)), "# " + part * (100_000 // len(part))):
            list_headings(text)
            list_links(text)

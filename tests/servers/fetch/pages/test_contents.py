"""What the page that shows a page is given: its title, its headings, its links, and where all of it is."""

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


async def seen(html: str, era: str = "2025-11-25", **arguments: Any) -> tuple[Any, str]:
    """What is shown of a page, and the URL that it has."""
    page = answer(html, content_type="text/html; charset=utf-8")
    async with opened_site({"/": page}) as site, shown(app, "--allow-private", "127.0.0.1:*", era=era) as (host, _):
        return await view_of(host, "fetch", url=site.url(), **arguments), site.url()


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
async def test_a_page_has_its_links_and_where_it_is(era: str) -> None:
    view, url = await seen(PAGE, era)
    assert view == {
        "url": url,
        "title": "Brot & Salz",
        "links": [{"text": "Salz", "url": f"{url}salz"}],
        "resource": url,
    }


@pytest.mark.slow
async def test_a_page_that_was_cut_has_its_outline() -> None:
    view, _ = await seen(LONG, max_length=100)
    assert view["outline"] == [{"level": 1, "text": "A"}, {"level": 2, "text": "B"}]


@pytest.mark.slow
async def test_another_form_of_a_page_is_not_what_its_resource_has() -> None:
    for arguments in ({"format": "text"}, {"raw": True}, {"section": "Brot"}):
        view, _ = await seen(PAGE, **arguments)
        assert "resource" not in view


def test_headings_are_those_that_a_reader_sees() -> None:
    text = (
        "# A *b* `c_d` [e](https://x.y/a) \\# f\n\ntext\n# \n```\n# no\n```\n~~~~\n# no\n```\n# no\n~~~~~\n### g_h_i"
    )
    assert list_headings(text) == [
        {"level": 1, "text": "A b c_d e # f"},
        {"level": 1, "text": ""},
        {"level": 3, "text": "g_h_i"},
    ]


def test_links_lead_to_the_web_and_come_once() -> None:
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
def test_what_a_page_has_too_much_of_is_left_out(text: str) -> None:
    found = {"outline": list_headings(text), "links": list_links(text)}
    assert all(found.values())
    assert size_of(found) <= MAX_VIEW


def test_no_text_takes_long() -> None:
    # A pattern that looks at the rest of a line for each sign on it would take an hour.
    for part in ("![](", "[", "[a](http://x ", "_", "\\", "# _", "`", '[a](http://x "'):
        for text in (part * (100_000 // len(part)), "# " + part * (100_000 // len(part))):
            list_headings(text)
            list_links(text)

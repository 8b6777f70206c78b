"""The tools, the prompt and the resources of a server process that fetches from a real site.

All tests share one process of each era, whose start takes longer than a test. Each test adds its own pages.
"""

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
import pytest_asyncio
from pydantic_core import to_json

from servers.fetch.features import tools
from servers.fetch.pages.snapshots import fetch_all
from servers.fetch.server import app
from tests.pictures import PNG
from tests.servers.common.documents.pdfs import written
from tests.servers.fetch.packing import PACK
from tests.servers.fetch.read.html.test_page import site_map
from tests.servers.fetch.serving import asked_over_http, served, two_sessions
from tests.servers.fetch.sites import ReceivedRequest, Route, Site, answer, opened_site, redirect
from tests.servers.peers import Peer, inside
from tests.wire import PATIENCE, STATELESS, with_envelope

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = "".join(f"Line {number} of a long text.\n" for number in range(1_000))
PAGE = "<html lang=de><title>Brot</title><main><h1>Brot</h1><p>Ein Brot braucht zwei Tage Zeit.</p></main></html>"


def read_fenced(text: str) -> str:
    """Returns the text between the fence marks."""
    match = re.search(r"<page-(\w+)>[^\n]*\n(.*)\n</page-\1>", text, re.DOTALL)
    assert match is not None, text
    return match.group(2)


def html(text: str = PAGE) -> bytes:
    return answer(text, content_type="text/html; charset=utf-8")


def plain(text: str) -> bytes:
    return answer(text, content_type="text/plain")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def peers() -> AsyncIterator[dict[str, Peer]]:
    async with served() as newest, served(era=STATELESS) as stateless:
        yield {"handshake": newest, "stateless": stateless}


@pytest.fixture
def peer(peers: dict[str, Peer]) -> Peer:
    return peers["handshake"]


@pytest.fixture(params=["handshake", "stateless"])
def any_peer(peers: dict[str, Peer], request: pytest.FixtureRequest) -> Peer:
    return peers[request.param]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    routes = {
        "/robots.txt": plain("User-agent: *\nDisallow: /robots"),
        "/zip": answer(b"PK\x03\x04\0\0", content_type="application/zip"),
    }
    async with opened_site(routes) as site:
        yield site


def add_page(site: Site, route: Route) -> str:
    """Adds a page to the site, and returns its path."""
    path = f"/{len(site.routes)}"
    site.routes[path] = route
    return path


async def test_fetch_returns_markdown_with_the_facts_of_the_page(any_peer: Peer, site: Site) -> None:
    page = add_page(site, html())
    first = add_page(site, redirect(page))
    result = await any_peer.call("fetch", url=site.url(first))
    text = result["content"][0]["text"]
    assert text.startswith(f'{site.url(first)} (200; "text/html", utf-8, {len(PAGE)} bytes)\n')
    assert f'\nredirected to "{site.url(page)}"\n' in text
    assert "# Brot\n\nEin Brot braucht zwei Tage Zeit." in read_fenced(text)
    facts = result["_meta"]
    assert (facts["url"], facts["status"], facts["language"]) == (site.url(page), 200, "de")


async def test_raw_returns_the_source_unchanged(peer: Peer, site: Site) -> None:
    url = site.url(add_page(site, html()))
    assert PAGE in read_fenced(await peer.text("fetch", url=url, raw=True))


async def test_pages_selects_pages_of_a_pdf(any_peer: Peer, site: Site) -> None:
    url = site.url(add_page(site, answer(written(["one", "two", "three"]), content_type="application/pdf")))
    text = await any_peer.text("fetch", url=url, pages="2-3")
    assert read_fenced(text).endswith("[page 2 of 3]\n\ntwo\n\n[page 3 of 3]\n\nthree")
    refused = await any_peer.call("fetch", url=url, pages="4")
    assert refused["isError"]
    assert refused["content"][0]["text"] == "bad_argument: there are only 3 pages, so there is no page 4"


async def test_a_gzip_file_is_unpacked_and_read(peer: Peer, site: Site) -> None:
    sitemap = b"<?xml version='1.0'?><urlset><url><loc>https://example.com/den</loc></url></urlset>"
    for media_type in ("application/gzip", "application/x-gzip", "application/octet-stream", "text/xml"):
        url = site.url(add_page(site, answer(PACK["gzip"](sitemap), content_type=media_type)))
        assert read_fenced(await peer.text("fetch", url=url)) == sitemap.decode()
    url = site.url(add_page(site, answer(PACK["gzip"](b"a\0b"), content_type="application/gzip")))
    refused = await peer.call("fetch", url=url)
    assert refused["content"][0]["text"].startswith('unsupported_type: "application/gzip", 3 bytes')


async def test_a_delayed_meta_refresh_is_noted_with_its_target(peer: Peer, site: Site) -> None:
    page = add_page(site, html('<title>Moved</title><meta http-equiv="refresh" content="5; url=/new/place">'))
    text = await peer.text("fetch", url=site.url(page))
    assert f'note: A browser would be redirected from here to "{site.url("/new/place")}" after 5 s.' in text


async def test_headings_of_omitted_text_are_listed_before_the_text(peer: Peer, site: Site) -> None:
    words = "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all. " * 8
    page = f"<title>Foxes</title><main><h1>Foxes</h1><p>{words}</main>{site_map()}"
    text = read_fenced(await peer.text("fetch", url=site.url(add_page(site, html(page)))))
    assert text.startswith("title: Foxes\nheadings of the omitted text:\n- All parts\n- Part 0\n")
    assert text.endswith(f"\n- Part 28\n\n# Foxes\n\n{words.strip()}")


async def test_pieces_come_from_one_snapshot_while_the_page_changes(peer: Peer, site: Site) -> None:
    path = add_page(site, plain(LONG))
    first = await peer.call("fetch", url=site.url(path), max_length=20_000)
    site.routes[path] = plain("something else")
    start = first["_meta"]["nextIndex"]
    second = await peer.text("fetch", url=site.url(path), start_index=start, max_length=20_000)
    assert site.paths.count(path) == 1
    assert read_fenced(first["content"][0]["text"]) + read_fenced(second) == LONG


async def test_a_later_piece_without_a_snapshot_notes_the_new_fetch(peer: Peer, site: Site) -> None:
    text = await peer.text("fetch", url=site.url(add_page(site, plain(LONG))), start_index=100)
    assert "note: this was fetched again" in text


async def test_a_page_fills_max_text_beside_its_header(site: Site) -> None:
    async with served("--max-text", "9000") as peer:
        text = await peer.text("fetch", url=site.url(add_page(site, plain(LONG))), max_length=20_000)
    assert 8_900 < len(to_json(text)) <= 9_000


async def test_fetch_many_fills_max_text_beside_its_headers(site: Site) -> None:
    urls = [site.url(add_page(site, plain(text))) for text in ("short", LONG, LONG)]
    async with served("--max-text", "9000") as peer:
        text = await peer.text("fetch_many", urls=urls)
    assert 8_800 < len(to_json(text)) <= 9_000


@pytest.mark.slow
async def test_without_tokens_a_snapshot_belongs_to_its_session() -> None:
    async with opened_site({"/": plain(LONG)}) as site, two_sessions() as (one, other):
        arguments = {"url": site.url(), "max_length": 1_000}
        await asked_over_http(one, "tools/call", name="fetch", arguments=arguments)
        assert (await asked_over_http(other, "resources/list"))["resources"] == []
        site.routes["/"] = plain("x" * 2_000)
        on = {"name": "fetch", "arguments": {**arguments, "start_index": 1_000}}
        theirs, mine = [await asked_over_http(client, "tools/call", **on) for client in (other, one)]
        assert len(site.requests) == 2
    assert read_fenced(mine["content"][0]["text"]) == LONG[1_000:2_000]
    assert read_fenced(theirs["content"][0]["text"]) == "x" * 1_000
    assert "note: this was fetched again" in theirs["content"][0]["text"]


async def test_refresh_requests_a_cached_page_again(peer: Peer, site: Site) -> None:
    path = add_page(site, answer("one", content_type="text/plain", cache_control="max-age=60"))
    assert read_fenced(await peer.text("fetch", url=site.url(path))) == "one"
    site.routes[path] = plain("two")
    cached = await peer.text("fetch", url=site.url(path))
    assert ", from the cache" in cached
    assert read_fenced(cached) == "one"
    assert read_fenced(await peer.text("fetch", url=site.url(path), refresh=True)) == "two"


async def test_an_image_is_returned_as_image_content(peer: Peer, site: Site) -> None:
    result = await peer.call("fetch", url=site.url(add_page(site, answer(PNG, content_type="image/png"))))
    assert result["content"][1] == {
        "type": "image",
        "mimeType": "image/png",
        "data": base64.b64encode(PNG).decode(),
    }


async def test_a_damaged_image_is_replaced_by_a_note(peer: Peer, site: Site) -> None:
    result = await peer.call("fetch", url=site.url(add_page(site, answer(PNG[:-1], content_type="image/png"))))
    assert result["content"][1] == {"type": "text", "text": "[damaged or incomplete image: not shown]"}


async def test_an_image_beyond_max_result_is_refused(any_peer: Peer, site: Site) -> None:
    url = site.url(add_page(site, answer(PNG + b"\0" * 900_000, content_type="image/png")))
    error = await any_peer.error("fetch", url=url)
    assert error.startswith("too_large: the image has 900,")
    assert error.endswith(" The operator can allow more with --max-result.")
    read = await any_peer.request("resources/read", uri=url)
    assert read["error"]["message"].startswith("too_large: the image has 900,")


async def test_an_error_begins_with_its_code(peer: Peer, site: Site) -> None:
    rows = {
        "ftp://127.0.0.1/": "bad_url",
        "http://192.168.0.1/": "blocked_address",
        "http://127.0.0.2/": "blocked_address",
        "http://a.invalid/": "dns",
        "/missing": "status",
        "/zip": "unsupported_type",
        "/robots": "robots",
    }
    texts = {url: await peer.error("fetch", url=site.url(url) if url[0] == "/" else url) for url in rows}
    assert {url: text.partition(": ")[0] for url, text in texts.items()} == rows


async def test_arguments_out_of_range_are_refused(peer: Peer) -> None:
    for more in ({"max_length": 0}, {"start_index": -1}, {"format": "pdf"}, {"max_length": 10**6}):
        answered = await peer.request("tools/call", name="fetch", arguments={"url": "http://127.0.0.1/", **more})
        assert "error" in answered or answered["result"]["isError"]
        assert next(iter(more)) in str(answered)


async def test_fetch_many_shares_the_length_and_keeps_the_order(any_peer: Peer, site: Site) -> None:
    paths = [add_page(site, plain(LONG)), "/nothing", add_page(site, plain("short"))]
    urls = [*map(site.url, paths)]
    result = await any_peer.call("fetch_many", urls=urls, max_length=1_000)
    text, pages = result["content"][0]["text"], result["_meta"]["pages"]
    places = [text.index(f"[{number}] {url}") for number, url in enumerate(urls, 1)]
    assert places == sorted(places)
    assert pages[0]["nextIndex"] == 995
    assert pages[1] == {"error": "status"}
    assert not pages[2]["truncated"]


async def test_fetch_many_is_an_error_if_every_page_fails(peer: Peer) -> None:
    text = await peer.error("fetch_many", urls=["ftp://a/", "http://10.0.0.1/"])
    assert re.search(r"\[1\] \nbad_url: .*\[2\] http://10\.0\.0\.1/\nblocked_address: ", text, re.DOTALL)


async def test_fetch_many_loads_its_pages_concurrently(peer: Peer, site: Site) -> None:
    awaited: set[str] = set()
    none_is_awaited = anyio.Event()

    async def comes(received: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        out.write(plain(f"this is {received.target}"))
        awaited.discard(received.target)
        if not awaited:
            none_is_awaited.set()

    async def waits(_: ReceivedRequest, out: asyncio.StreamWriter) -> None:
        await none_is_awaited.wait()
        out.write(plain("this is the last page"))

    paths = [add_page(site, waits), *(add_page(site, comes) for _ in range(19))]
    awaited |= set(paths[1:])
    text = await peer.text("fetch_many", urls=[*map(site.url, paths)])
    assert all(f"\nthis is {path}\n" in text for path in paths[1:])
    assert "\nthis is the last page\n" in text


async def test_fetch_many_waits_until_three_seconds_before_the_call_timeout(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def record(*arguments: Any) -> Any:
        given.extend(arguments)
        return fetch_all(*arguments)

    monkeypatch.setattr(tools, "fetch_all", record)
    async with inside(app, "--allow-private", "127.0.0.1:*") as peer:
        await peer.text("fetch_many", urls=[site.url(add_page(site, plain("a")))])
        seconds = peer.running.calls.budget.seconds
    assert given[3] == seconds - 3


@pytest.mark.slow
async def test_fetch_many_returns_the_other_pages_when_a_page_times_out() -> None:
    async def endless(received: ReceivedRequest, _: asyncio.StreamWriter) -> None:
        await received.until_closed()

    pages = {f"/{number}": plain(f"page {number}") for number in range(19)}
    async with opened_site({**pages, "/endless": endless}) as site, served("--timeout", "3") as peer:
        await peer.text("fetch", url=site.url("/0"))  # starts the reader process before the timeout counts
        text = await peer.text("fetch_many", urls=[site.url("/endless"), *map(site.url, pages)])
    assert all(f"\npage {number}\n" in text for number in range(19))
    assert "timeout: " in text


def make_silent_route() -> tuple[anyio.Event, anyio.Event, Route]:
    """Returns an event set on a request, an event set when its connection closes, and a route that never answers."""
    requested, closed = anyio.Event(), anyio.Event()

    async def silent(request: ReceivedRequest, _: asyncio.StreamWriter) -> None:
        requested.set()
        await request.until_closed()
        closed.set()

    return requested, closed, silent


async def test_a_cancelled_call_closes_its_connection(any_peer: Peer, site: Site) -> None:
    requested, closed, silent = make_silent_route()
    params = {"name": "fetch", "arguments": {"url": site.url(add_page(site, silent))}}
    params = with_envelope(params) if any_peer.stateless else params
    await any_peer.wire.send({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params})
    with anyio.fail_after(20):
        await requested.wait()
        await any_peer.wire.notify("notifications/cancelled", {"requestId": 99})
        await closed.wait()


async def test_the_prompt_contains_the_page(any_peer: Peer, site: Site) -> None:
    url = site.url(add_page(site, html()))
    answered = await any_peer.request("prompts/get", name="fetch", arguments={"url": url})
    refused = await any_peer.request("prompts/get", name="fetch", arguments={"url": "http://10.0.0.1/"})
    assert "zwei Tage" in read_fenced(answered["result"]["messages"][0]["content"]["text"])
    assert refused["error"]["code"] == -32602
    assert refused["error"]["message"].startswith("blocked_address: ")


async def test_a_page_is_a_resource_that_is_listed_after_reading(any_peer: Peer, site: Site) -> None:
    url = site.url(add_page(site, html())) + "?q=ä&a=1"
    read = await any_peer.request("resources/read", uri=url)
    listed = await any_peer.request("resources/list")
    missing = await any_peer.request("resources/read", uri="https://192.0.2.1/")
    (contents,) = read["result"]["contents"]
    assert contents["mimeType"] == "text/markdown"
    assert "zwei Tage" in read_fenced(contents["text"])
    (resource,) = (one for one in listed["result"]["resources"] if one["uri"] == url)
    assert resource.get("title", "Brot") == "Brot"
    assert missing["error"]["message"].startswith("blocked_")


async def test_blanks_and_braces_are_percent_encoded_in_the_listed_uri(any_peer: Peer, site: Site) -> None:
    url = site.url(add_page(site, html()))
    await any_peer.request("tools/call", name="fetch", arguments={"url": f"{url}?q={{a}} 50%"})
    listed = (await any_peer.request("resources/list"))["result"]["resources"]
    assert f"{url}?q=%7Ba%7D%2050%25" in [resource["uri"] for resource in listed]


async def test_a_cancelled_task_closes_its_connections(peer: Peer, site: Site) -> None:
    requested, closed, silent = make_silent_route()
    call = {"name": "fetch_many", "arguments": {"urls": [site.url(add_page(site, silent))]}, "task": {}}
    task = (await peer.request("tools/call", **call))["result"]["task"]["taskId"]
    with anyio.fail_after(PATIENCE):
        await requested.wait()
        cancelled = await peer.request("tasks/cancel", taskId=task)
        await closed.wait()
    assert cancelled["result"]["status"] == "cancelled"


async def test_the_tool_definitions_are_small(peer: Peer) -> None:
    tools = (await peer.request("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["fetch", "fetch_many"]
    assert len(str(tools)) < 3_500

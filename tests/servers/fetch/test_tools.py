"""The tools, the prompt and the resources through the front door: a real process, and a real site."""

import base64
import re

import anyio
import pytest

from tests.interop.pages import PIXEL
from tests.servers.peers import ERAS
from tests.wire import STATELESS

from .serving import served
from .sites import Asked, answer, opened_site, redirect

every_era = pytest.mark.parametrize("era", ERAS)
pytestmark = pytest.mark.slow

LONG = "".join(f"Line {number} of a long text.\n" for number in range(1_000))
PAGE = "<html lang=de><title>Brot</title><main><h1>Brot</h1><p>Ein Brot braucht zwei Tage Zeit.</p></main></html>"


def within(text: str) -> str:
    """What stands between the marks."""
    found = re.search(r"<page-(\w+)>[^\n]*\n(.*)\n</page-\1>", text, re.DOTALL)
    assert found is not None, text
    return found.group(2)


def html(text: str = PAGE) -> bytes:
    return answer(text, content_type="text/html; charset=utf-8")


def plain(text: str) -> bytes:
    return answer(text, content_type="text/plain")


@every_era
async def test_a_page_is_markdown_with_its_facts(era: str) -> None:
    async with opened_site({"/": redirect("/brot"), "/brot": html()}) as site, served(era=era) as peer:
        result = await peer.call("fetch", url=site.url())
    text = result["content"][0]["text"]
    assert text.startswith(f"{site.url('/brot')} (200; text/html, utf-8, {len(PAGE)} bytes)\n")
    assert f"\nredirected from {site.url()}\n" in text
    assert "# Brot\n\nEin Brot braucht zwei Tage Zeit." in within(text)
    facts = result["_meta"]
    assert (facts["url"], facts["status"], facts["language"]) == (site.url("/brot"), 200, "de")


async def test_the_source_is_given_as_it_was_sent() -> None:
    async with opened_site({"/": html()}) as site, served() as peer:
        assert PAGE in within(await peer.text("fetch", url=site.url(), raw=True))


@every_era
async def test_h13_pieces_are_of_one_text_while_the_page_changes(era: str) -> None:
    async with opened_site({"/": plain(LONG)}) as site, served(era=era) as peer:
        first = await peer.call("fetch", url=site.url(), max_length=20_000)
        site.routes["/"] = plain("something else")
        second = await peer.text("fetch", url=site.url(), start_index=first["_meta"]["nextIndex"], max_length=20_000)
        assert len(site.asked) == 1
    assert within(first["content"][0]["text"]) + within(second) == LONG


async def test_a_piece_of_what_was_never_read_says_that_it_was_fetched_anew() -> None:
    async with opened_site({"/": plain(LONG)}) as site, served() as peer:
        text = await peer.text("fetch", url=site.url(), start_index=100)
    assert "note: this was fetched anew" in text


async def test_a_refresh_asks_the_site_again() -> None:
    one = answer("one", content_type="text/plain", cache_control="max-age=60")
    async with opened_site({"/": one}) as site, served() as peer:
        assert within(await peer.text("fetch", url=site.url())) == "one"
        site.routes["/"] = plain("two")
        cached = await peer.text("fetch", url=site.url())
        assert ", from the cache" in cached
        assert within(cached) == "one"
        assert within(await peer.text("fetch", url=site.url(), refresh=True)) == "two"


async def test_an_image_is_shown_as_one() -> None:
    async with opened_site({"/": answer(PIXEL, content_type="image/png")}) as site, served() as peer:
        result = await peer.call("fetch", url=site.url())
    assert result["content"][1] == {
        "type": "image",
        "mimeType": "image/png",
        "data": base64.b64encode(PIXEL).decode(),
    }


async def test_an_image_that_no_answer_could_hold_is_refused() -> None:
    huge = PIXEL + b"\0" * 900_000
    async with opened_site({"/": answer(huge, content_type="image/png")}) as site, served() as peer:
        assert (await peer.error("fetch", url=site.url())).startswith("too_large: the image has 900,")
        read = await peer.request("resources/read", uri=site.url())
    assert read["error"]["message"].startswith("too_large: the image has 900,")


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("ftp://127.0.0.1/", "bad_url"),
        ("http://192.168.0.1/", "blocked_address"),
        ("http://127.0.0.2/", "blocked_address"),
        ("http://a.invalid/", "dns"),
        ("/missing", "status"),
        ("/zip", "unsupported_type"),
        ("/robots", "robots"),
    ],
)
async def test_an_error_begins_with_its_code(url: str, code: str) -> None:
    routes = {
        "/robots.txt": plain("User-agent: *\nDisallow: /robots"),
        "/zip": answer(b"PK\x03\x04\0\0", content_type="application/zip"),
    }
    async with opened_site(routes) as site, served() as peer:
        text = await peer.error("fetch", url=site.url(url) if url.startswith("/") else url)
    assert text.startswith(f"{code}: ")


@pytest.mark.parametrize("more", [{"max_length": 0}, {"start_index": -1}, {"format": "pdf"}, {"max_length": 10**6}])
async def test_arguments_out_of_range_are_refused(more: dict[str, object]) -> None:
    async with served() as peer:
        result = await peer.call("fetch", url="http://127.0.0.1/", **more)
    assert result["isError"]
    assert next(iter(more)) in result["content"][0]["text"]


async def test_several_pages_share_the_length_and_keep_their_order() -> None:
    async with opened_site({"/long": plain(LONG), "/short": plain("short")}) as site, served() as peer:
        urls = [site.url("/long"), site.url("/nothing"), site.url("/short")]
        result = await peer.call("fetch_many", urls=urls, max_length=1_000)
    text, pages = result["content"][0]["text"], result["_meta"]["pages"]
    places = [text.index(f"[{number}] {url}") for number, url in enumerate(urls, 1)]
    assert places == sorted(places)
    assert pages[0]["nextIndex"] == 995
    assert pages[1] == {"error": "status"}
    assert not pages[2]["truncated"]


async def test_several_pages_of_which_none_comes_are_an_error() -> None:
    async with served() as peer:
        text = await peer.error("fetch_many", urls=["ftp://a/", "http://10.0.0.1/"])
    assert re.search(r"\[1\] \nbad_url: .*\[2\] http://10\.0\.0\.1/\nblocked_address: ", text, re.DOTALL)


async def test_h16_one_poisonous_page_keeps_no_other_waiting() -> None:
    async def endless(asked: Asked, writer: object) -> None:
        await asked.until_closed()

    pages = {f"/{number}": plain(f"page {number}") for number in range(19)}
    async with opened_site({**pages, "/endless": endless}) as site, served("--timeout", "3") as peer:
        await peer.text("fetch", url=site.url("/0"))  # so that what reads pages has started when time counts
        text = await peer.text("fetch_many", urls=[site.url("/endless"), *map(site.url, pages)])
    assert all(f"\npage {number}\n" in text for number in range(19))
    assert "timeout: " in text


async def test_h17_a_cancelled_call_ends_its_connection() -> None:
    asked, closed = anyio.Event(), anyio.Event()

    async def silent(request: Asked, writer: object) -> None:
        asked.set()
        await request.until_closed()
        closed.set()

    async with opened_site({"/": silent}) as site, served() as peer:
        params = {"name": "fetch", "arguments": {"url": site.url()}}
        await peer.wire.send({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params})
        with anyio.fail_after(20):
            await asked.wait()
            await peer.wire.notify("notifications/cancelled", {"requestId": 99})
            await closed.wait()


@every_era
async def test_the_prompt_puts_the_page_before_the_model(era: str) -> None:
    async with opened_site({"/": html()}) as site, served(era=era) as peer:
        answered = await peer.request("prompts/get", name="fetch", arguments={"url": site.url()})
        refused = await peer.request("prompts/get", name="fetch", arguments={"url": "http://10.0.0.1/"})
    assert "zwei Tage" in within(answered["result"]["messages"][0]["content"]["text"])
    assert refused["error"]["code"] == -32602
    assert refused["error"]["message"].startswith("blocked_address: ")


@every_era
async def test_a_page_is_a_resource_and_listed_afterwards(era: str) -> None:
    async with opened_site({"/": html()}) as site, served(era=era) as peer:
        read = await peer.request("resources/read", uri=site.url("/?q=ä&a=1"))
        listed = await peer.request("resources/list")
        missing = await peer.request("resources/read", uri="https://192.0.2.1/")
    (contents,) = read["result"]["contents"]
    assert contents["mimeType"] == "text/markdown"
    assert "zwei Tage" in within(contents["text"])
    (resource,) = listed["result"]["resources"]
    assert (resource["uri"], resource.get("title", "Brot")) == (site.url("/?q=ä&a=1"), "Brot")
    assert missing["error"]["message"].startswith("blocked_")


async def test_the_list_of_tools_is_small() -> None:
    async with served(era=STATELESS) as peer:
        tools = (await peer.request("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["fetch", "fetch_many"]
    assert len(str(tools)) < 3_500

"""Subscriptions to URLs by a client of each era."""

import re
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from servers.fetch.pages import watch
from servers.fetch.server import app
from servers.fetch.settings import Settings
from shared.protocol.identity import Principal
from shared.stores.memory import Stores
from tests.servers.fetch.serving import COMMAND, asked_over_http, client_at_url, open_session, served
from tests.servers.fetch.sites import Route, Site, answer, opened_site
from tests.servers.peers import Peer
from tests.shared.server.peer import talking
from tests.wire import STATELESS, Wire, listening, with_envelope

ERAS = ["2025-11-25", STATELESS]
FORBIDDEN = "/forbidden"
MEBIBYTE = 1024 * 1024


def page(words: str) -> bytes:
    return answer(f"<main><p>{words}</main>", content_type="text/html", cache_control="max-age=1")


async def subscribe(peer: Peer, site: Site) -> None:
    """Subscribes to the first page, and to a page that is refused."""
    uris = [site.url(), site.url(FORBIDDEN)]
    if peer.stateless:
        params = with_envelope({"notifications": {"resourceSubscriptions": uris}})
        await peer.wire.send({"jsonrpc": "2.0", "id": "L", "method": "subscriptions/listen", "params": params})
        acknowledged = await peer.wire.receive()
        assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": uris[:1]}
    else:
        assert (await peer.request("resources/subscribe", uri=uris[0]))["result"] == {}
        refusal = (await peer.request("resources/subscribe", uri=uris[1]))["error"]
        assert refusal["code"] == -32002
        assert refusal["message"].startswith("robots: the robots.txt of 127.0.0.1 disallows")


async def updates(peer: Peer, count: int) -> list[str]:
    """Returns the sorted URIs of the next update notifications."""
    uris: list[str] = []
    with anyio.fail_after(30):
        while len(uris) < count:
            message = await peer.wire.receive()
            if message.get("method") == "notifications/resources/updated":
                uris.append(message["params"]["uri"])
    return uris


def robots() -> dict[str, Route]:
    return {"/robots.txt": answer(f"User-agent: *\nDisallow: {FORBIDDEN}", content_type="text/plain")}


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
async def test_a_changed_page_sends_updates_until_the_subscription_ends(era: str) -> None:
    async with opened_site({**robots(), "/": page("old")}) as site, served("--poll", "1", era=era) as peer:
        await subscribe(peer, site)
        site.routes["/"] = page("new")
        assert await updates(peer, 1) == [site.url()]
        read = await peer.request("resources/read", uri=site.url())
        assert "new" in read["result"]["contents"][0]["text"]
        if peer.stateless:
            await peer.wire.notify("notifications/cancelled", {"requestId": "L"})
        else:
            await peer.request("resources/unsubscribe", uri=site.url())
        before = len(site.requests)
        # Longer than the interval of two checks.
        await anyio.sleep(2.5)
        assert len(site.requests) <= before + 1


async def test_subscribing_to_a_uri_that_is_not_a_public_page_fails() -> None:
    async with served() as peer:
        for uri in ("file:///etc/passwd", "http://169.254.169.254/", "https://user@site.example/"):
            assert (await peer.request("resources/subscribe", uri=uri))["error"]["code"] == -32002


async def test_a_client_cannot_use_up_the_limit_of_watched_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MAX_PAGES", 2)
    async with (
        opened_site({"*": page("old")}) as site,
        app.open(Settings(allow_private=["127.0.0.1:*"])) as running,
        talking(running, principal=Principal("ada")) as ada,
        talking(running, principal=Principal("bob")) as bob,
    ):
        subscriptions = [(ada, "/1"), (ada, "/2"), (bob, "/2")]
        answers = [await peer.request("resources/subscribe", {"uri": site.url(path)}) for peer, path in subscriptions]
    assert ["result" in answer for answer in answers] == [True, False, True]


@pytest.mark.slow
async def test_each_client_of_two_replicas_gets_one_update_per_change() -> None:
    stores = Stores()
    settings = Settings(allow_private=["127.0.0.1:*"], poll=1)
    async with (
        opened_site({"/": page("old")}) as site,
        app.open(settings, stores=stores) as one,
        app.open(settings, stores=stores) as other,
        talking(one) as here,
        talking(other) as there,
    ):
        peers = (here, there)
        for peer in peers:
            assert (await peer.request("resources/subscribe", {"uri": site.url()}))["result"] == {}
        site.routes["/"] = page("new")
        for peer in peers:
            with anyio.fail_after(30):
                assert (await peer.receive())["params"] == {"uri": site.url()}
        before = len(site.requests)
        # Long enough for each replica to check twice more.
        for peer in peers:
            with anyio.move_on_after(2.5):
                raise AssertionError(await peer.receive())
        assert len(site.requests) > before


async def test_a_page_that_another_replica_reports_is_checked() -> None:
    stores, settings = Stores(), Settings(allow_private=["127.0.0.1:*"], poll=3_600)
    async with (
        opened_site({"/": page("old")}) as site,
        app.open(settings, stores=stores) as one,
        app.open(settings, stores=stores) as other,
        talking(other) as there,
    ):
        assert (await there.request("resources/subscribe", {"uri": site.url()}))["result"] == {}
        before = len(site.requests)
        one.changes.resource(site.url())
        assert (await there.receive())["params"] == {"uri": site.url()}
        with anyio.fail_after(30):
            while len(site.requests) == before:
                await anyio.sleep(0.001)


def read_private_memory(pid: int) -> int:
    """Returns the private memory of a process in bytes."""
    match = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert match is not None
    return int(match[1]) * 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read in /proc")
async def test_a_thousand_subscriptions_to_a_hundred_pages_need_one_check_a_page() -> None:
    text = "<p>A bread of rye wants two days, a warm place and patience.</p>" * 300
    plain = answer(f"<main>{text}</main>", content_type="text/html", etag='"1"')
    command = [*COMMAND, "--transport", "http", "--host", "127.0.0.1", "--port", "0"]
    async with opened_site({"*": plain}) as site, Wire(command) as process, AsyncExitStack() as stack:
        url, pid = await listening(process), process.pid
        clients = [await stack.enter_async_context(client_at_url(url)) for _ in range(10)]
        for client in clients:
            await open_session(client)
            await asked_over_http(client, "resources/read", uri=site.url("/first"))
        before = read_private_memory(pid)
        for number in range(100):
            for client in clients:
                await asked_over_http(client, "resources/subscribe", uri=site.url(f"/{number}"))
        # Ten reads of the first page, and a check of each of the others.
        assert len(site.requests) == 110
        assert read_private_memory(pid) - before <= 20 * MEBIBYTE
        process.terminate()

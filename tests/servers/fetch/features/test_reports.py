"""Log messages about slow and truncated pages, for a client of each era."""

from collections.abc import AsyncIterator

import anyio
import pytest
import pytest_asyncio

from servers.fetch.features import reports
from servers.fetch.server import app
from tests.servers.fetch.sites import Gate, Site, answer, opened_site
from tests.servers.reports import both_eras, reading

HERE = ("--allow-private", "127.0.0.1:*")
UNREAD = 2_000
"""More answers than the buffers of the connection to a client hold."""
LONG = "0123456789\n" * 85_000


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    routes = {"/short": answer("Brief.", content_type="text/plain"), "/long": answer(LONG, content_type="text/plain")}
    async with opened_site(routes) as site:
        yield site


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every page count as slow, without a delay."""
    monkeypatch.setattr(reports, "SLOW_SECONDS", 0.0)


@both_eras
async def test_a_slow_site_is_logged_on_success_and_failure(site: Site, slow: None, era: str) -> None:
    async with reading(app, *HERE, era=era) as client:
        for path in ("/short", "/missing"):
            ((level, text),) = await client.messages_of_tool("fetch", url=site.url(f"{path}?token=secret"))
            assert level == "notice"
            assert text.startswith("127.0.0.1 is slow: a page took ")
            assert "secret" not in text


@pytest.mark.slow
async def test_an_invalid_url_logs_no_slow_site(slow: None) -> None:
    async with reading(app) as client:
        assert await client.messages_of_tool("fetch", url="http://[secret/") == []


@pytest.mark.slow
async def test_unread_log_messages_delay_no_other_fetch(slow: None) -> None:
    gate = Gate()
    async with opened_site({"*": gate}) as site, reading(app, *HERE, "--max-concurrent", "1") as client:
        for path in ("/first", "/second"):
            await client.peer.start("fetch", url=site.url(path))
        await gate.until(1)
        for _ in range(UNREAD):
            await client.peer.begin("ping")
        gate.open.set()
        with anyio.fail_after(10):
            while len(site.requests) < 2:
                await anyio.sleep(0)


@pytest.mark.slow
@both_eras
async def test_a_page_cut_by_the_size_limit_is_logged(site: Site, era: str) -> None:
    async with reading(app, *HERE, era=era) as client:
        messages = await client.messages_of_tool("fetch", url=site.url("/long"), max_length=999_999)
        messages += await client.messages_of("resources/read", uri=site.url("/long"))
    assert [level for level, _ in messages] == ["info", "info"]
    assert messages[0][1].startswith("a page from 127.0.0.1 was truncated: characters 0 to 7")
    assert messages[1][1].startswith("a page from 127.0.0.1 was truncated: characters 0 to 100,000 of ")


@pytest.mark.slow
@both_eras
async def test_a_page_cut_at_max_length_is_not_logged(site: Site, era: str) -> None:
    async with reading(app, *HERE, era=era) as client:
        assert await client.messages_of_tool("fetch", url=site.url("/long"), max_length=100) == []


@pytest.mark.slow
@both_eras
async def test_without_a_log_level_no_message_is_sent(site: Site, slow: None, era: str) -> None:
    async with reading(app, *HERE, era=era, level=None) as client:
        assert await client.messages_of_tool("fetch", url=site.url("/long"), max_length=999_999) == []

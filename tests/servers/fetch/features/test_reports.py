"""What the user is told by log messages, in both eras, and what nobody is told who did not ask."""

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
"""Answers that are more than the way to a client holds."""
LONG = "0123456789\n" * 85_000


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    routes = {"/short": answer("Brief.", content_type="text/plain"), "/long": answer(LONG, content_type="text/plain")}
    async with opened_site(routes) as site:
        yield site


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every page is a slow one, without waiting for it."""
    monkeypatch.setattr(reports, "SLOW_SECONDS", 0.0)


@both_eras
async def test_a_slow_site_is_told_whether_it_gave_the_page_or_not(site: Site, slow: None, era: str) -> None:
    async with reading(app, *HERE, era=era) as client:
        for path in ("/short", "/missing"):
            ((level, text),) = await client.told_by("fetch", url=site.url(f"{path}?token=secret"))
            assert level == "notice"
            assert text.startswith("127.0.0.1 is slow: a page took ")
            assert "secret" not in text


@pytest.mark.slow
async def test_what_is_no_url_is_the_fault_of_no_site(slow: None) -> None:
    async with reading(app) as client:
        assert await client.told_by("fetch", url="http://[secret/") == []


@pytest.mark.slow
async def test_a_client_that_does_not_read_what_it_is_told_keeps_no_page_from_others(slow: None) -> None:
    gate = Gate()
    async with opened_site({"*": gate}) as site, reading(app, *HERE, "--max-concurrent", "1") as client:
        for path in ("/first", "/second"):
            await client.peer.start("fetch", url=site.url(path))
        await gate.until(1)
        for _ in range(UNREAD):
            await client.peer.begin("ping")
        gate.open.set()
        with anyio.fail_after(10):
            while len(site.asked) < 2:
                await anyio.sleep(0)


@pytest.mark.slow
@both_eras
async def test_a_page_that_an_answer_can_not_hold_is_told(site: Site, era: str) -> None:
    async with reading(app, *HERE, era=era) as client:
        told = await client.told_by("fetch", url=site.url("/long"), max_length=999_999)
        told += await client.told("resources/read", uri=site.url("/long"))
    assert [level for level, _ in told] == ["info", "info"]
    assert told[0][1].startswith("a page from 127.0.0.1 was truncated: characters 0 to 7")
    assert told[1][1].startswith("a page from 127.0.0.1 was truncated: characters 0 to 100,000 of ")


@pytest.mark.slow
@both_eras
async def test_a_page_of_as_many_characters_as_were_asked_for_is_no_news(site: Site, era: str) -> None:
    async with reading(app, *HERE, era=era) as client:
        assert await client.told_by("fetch", url=site.url("/long"), max_length=100) == []


@pytest.mark.slow
@both_eras
async def test_who_asks_for_no_level_is_told_nothing(site: Site, slow: None, era: str) -> None:
    async with reading(app, *HERE, era=era, level=None) as client:
        assert await client.told_by("fetch", url=site.url("/long"), max_length=999_999) == []

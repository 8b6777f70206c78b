"""One client's pages that do not come leave a place to another."""

import asyncio
import sys

import pytest

from tests.servers.crowds import busy, client_at, result_of
from tests.servers.fetch.sites import Asked, answer, opened_site
from tests.wire import start_http

pytestmark = pytest.mark.slow


async def silence(asked: Asked, _: asyncio.StreamWriter) -> None:
    await asked.until_closed()


async def test_slow_pages_of_one_client_leave_a_place_to_another() -> None:
    options = ["--allow-private", "127.0.0.1:*", "--ignore-robots", "--timeout", "120", "--max-seconds", "120"]
    command = [sys.executable, "-m", "servers.fetch", *options, "--max-concurrent", "2", "--max-per-host", "2"]
    quick = answer("quick", content_type="text/plain")
    async with (
        opened_site({"/slow": silence, "*": quick}) as site,
        start_http(command) as url,
        client_at(url, "127.0.0.2") as greedy,
        client_at(url, "127.0.0.3") as modest,
        busy(greedy, 4, "fetch", url=site.url("/slow")),
    ):
        for number in range(3):
            result = await result_of(modest, "fetch", url=site.url(f"/{number}"))
            assert "quick" in result["content"][0]["text"]

"""Answers put together at random: each is a page or a FetchError, and nothing takes long."""

import asyncio
from collections.abc import Awaitable
from random import Random

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.read.page import Loaded
from tests.servers.fetch.loaders import opened_loader
from tests.servers.fetch.packing import NAMES, PACK
from tests.servers.fetch.sites import Asked, opened_site

NAMED = [
    *("Location", "Content-Encoding", "Content-Type", "Content-Length", "Transfer-Encoding", "Cache-Control"),
    *("Expires", "Date", "Age", "Vary", "ETag", "Last-Modified", "Retry-After", "Set-Cookie", "Connection"),
    *("Content-Range", "Upgrade", "X-Odd"),
]
WORDS = [
    *("gzip", "br", "zstd", "deflate", "identity", "chunked", "close", "max-age=60", "no-cache", "no-store", "*"),
    *("Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 99999 23:59:60 GMT", "-1", "0", "5", "9" * 20, "1e9", ""),
    *("/b", "//", "http://", "http://[::1", "https://127.0.0.1:x/", "file:///", "\\\\a\\b", "?", "#", "../../.."),
    *("text/html", "text/html; charset=punycode", "text/plain; charset=\xff", ";;", "a=b=c", '"', "W/", "\xe4\xff"),
    *("\t", "%zz", 'private="', "accept, accept", "bytes 0-1/5", "http://a@b/", "/\x01", "max-age=\xd9\xa3"),
]
STATUSES = [200, 200, 200, 204, 206, 301, 302, 304, 307, 404, 429, 503, 103, 999, 0]


def generated(random: Random) -> bytes:
    body = bytes(random.choices(range(256), k=random.choice([0, 1, 50, 3_000])))
    lines = [f"HTTP/{random.choice(['1.1', '1.0', '1.1'])} {random.choice(STATUSES)} {random.choice(WORDS)}"]
    if random.random() < 0.5:
        name = random.choice(list(PACK))
        body = PACK[name](body)
        lines.append(f"Content-Encoding: {NAMES[name]}")
    if random.random() < 0.3:
        at = random.randrange(len(body) + 1)
        body = body[:at] + bytes(random.choices(range(256), k=3)) + body[at + random.randrange(4) :]
    if random.random() < 0.5:
        lines.append(f"Location: {random.choice(WORDS)}")
    lines += [f"{random.choice(NAMED)}: {random.choice(WORDS)}" for _ in range(random.randrange(6))]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def outcomes(seeds: range, ignore_robots: bool) -> set[str]:
    """How the loads of generated answers ended."""

    async def answers(asked: Asked, out: asyncio.StreamWriter) -> None:
        out.write(generated(Random(f"{seeds.start}{asked.target}")))

    async with (
        opened_site({"*": answers, "/robots.txt": answers}) as site,
        opened_loader(timeout=30, ignore_robots=ignore_robots) as loader,
    ):
        loads = (loader.load(site.url(f"/{seed}")) for seed in seeds for _ in range(2))
        return {str(one) for one in await asyncio.gather(*map(outcome, loads))}


async def outcome(load: Awaitable[Loaded]) -> str:
    try:
        await load
    except FetchError as error:
        return f"{error.code}: {error}"
    return "loaded"


async def check(seeds: range) -> None:
    seen: set[str] = set()
    for start in seeds[::10]:
        seen |= await outcomes(range(start, start + 10), ignore_robots=start % 20 > 0)
    assert not [one for one in seen if "a@b" in one]
    codes = {one.partition(":")[0] for one in seen}
    assert codes >= {"loaded", "bad_response", "status", "robots", "bad_url"}
    assert codes.isdisjoint({"timeout", "busy"})


@pytest.mark.slow
async def test_whatever_a_site_answers_is_a_page_or_an_error() -> None:
    await check(range(100))


@pytest.mark.slow
@pytest.mark.timeout(1_800)
async def test_whatever_a_site_answers_is_a_page_or_an_error_in_the_long_run() -> None:
    await check(range(1_000, 21_000))

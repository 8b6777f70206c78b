"""Random URLs through the whole loader, requested, redirected to, and for robots.txt: allowed addresses only."""

from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack

import anyio
import pytest

from servers.fetch.errors import CODES, FetchError
from servers.fetch.load.loader import Loader, LoadRules
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.addresses import is_public, parse_address
from servers.fetch.network.client import ClientOptions, open_client
from servers.fetch.network.urls import parse_url
from tests.checks.fetch.hostile_urls import Urls
from tests.checks.fetch.rawsites import opened_raw_site, redirect_to
from tests.checks.fetch.recording import Reached, recorded
from tests.descriptors import descriptors, settled_descriptors
from tests.servers.fetch.sites import answer

PATIENCE = 20
NAMES = {
    "here.example": ["127.0.0.1"],
    "private.example": ["10.0.0.1"],
    "mixed.example": ["127.0.0.1", "192.168.0.1"],
    "mapped.example": ["::ffff:10.0.0.1"],
    "scoped.example": ["fe80::1%lo"],
    "nothing.example": [],
    "garbage.example": ["127.1", "x", ""],
    "localhost": ["127.0.0.77", "::1"],
    "metadata.google.internal": ["169.254.169.254"],
}


class Names:
    """A resolver in whose answers one name changes its address each time."""

    def __init__(self) -> None:
        self.asked = 0

    async def resolve(self, host: str) -> Sequence[str]:
        self.asked += 1
        if host == "rebinding.example":
            return ["127.0.0.1" if self.asked % 2 else "10.0.0.1"]
        if host not in NAMES:
            raise FetchError("dns", f"could not resolve {host}")
        return NAMES[host]


async def opened(stack: AsyncExitStack, port: int, *, ignore_robots: bool) -> Loader:
    """A loader that may reach one site and nothing else, though its port is open for public addresses."""
    policy = Policy(Rules(allow_private=[f"127.0.0.1:{port}"], allow_port=[port]))
    client = await stack.enter_async_context(open_client(ClientOptions(), policy, Names()))
    return Loader(client, policy, LoadRules("tester/1.0", PATIENCE, cache_bytes=0, ignore_robots=ignore_robots))


async def outcome(loader: Loader, url: str) -> str:
    """How one load ended: the code of an error, or nothing."""
    with anyio.fail_after(PATIENCE):
        try:
            parsed = parse_url(url)
            assert parse_url(str(parsed)) == parsed
            loaded = await loader.load(url)
        except FetchError as error:
            return told(error)
    assert loaded.status == 200
    return ""


def told(error: FetchError) -> str:
    """The code of an error, which repeats no credentials and no address of a name."""
    assert error.code in CODES
    assert not any(secret in str(error) for secret in ("hunter2", "192.168.0.1", "127.0.0.77", "fe80::1%lo"))
    return error.code


def assert_allowed(reached: Reached, port: int) -> None:
    """Nothing was reached but the site, and addresses that became public by the loss of a digit."""
    others = {one for one in reached if one != ("127.0.0.1", port)}
    assert len(others) < len(reached)
    assert all(is_public(parse_address(address)) and other == port for address, other in others), others


@pytest.mark.timeout(600)
async def test_random_urls_connect_only_to_allowed_addresses() -> None:
    times = 2_000
    ended: Counter[str] = Counter()
    url = ""

    def answers(path: str) -> bytes:
        return redirect_to(url) if path == "/to" else answer("page")

    with recorded() as reached:
        async with opened_raw_site(answers) as port:
            before = len(settled_descriptors())
            async with AsyncExitStack() as stack:
                loaders = [await opened(stack, port, ignore_robots=ignoring) for ignoring in (True, False)]
                urls = Urls(times, port)
                for number in range(times // 2):
                    url = urls.url()
                    for asked in (url, f"http://127.0.0.1:{port}/to"):
                        ended[await outcome(loaders[number % 2], asked)] += 1
            await anyio.wait_all_tasks_blocked()
            assert len(descriptors()) <= before
    assert_allowed(reached, port)
    assert set(ended) >= {"", "bad_url", "blocked_host", "blocked_address", "dns"}
    assert not {"timeout", "busy"} & set(ended)


@pytest.mark.timeout(600)
async def test_a_robots_txt_leads_to_no_other_address() -> None:
    times = 500
    ended: Counter[str] = Counter()
    url = ""

    def answers(path: str) -> bytes:
        return redirect_to(url) if path == "/robots.txt" else answer("page")

    with recorded() as reached:
        async with opened_raw_site(answers) as port:
            urls = Urls(times, port)
            for _ in range(times):
                url = urls.url()
                async with AsyncExitStack() as stack:
                    loader = await opened(stack, port, ignore_robots=False)
                    ended[await outcome(loader, f"http://127.0.0.1:{port}/page")] += 1
    assert_allowed(reached, port)
    assert set(ended) == {"", "robots"}

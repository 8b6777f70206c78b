"""Random answers, from the site to the model: fenced, bounded, and from no other host."""

import re
from collections import Counter

import anyio
import pytest

from servers.fetch.errors import CODES, FetchError
from servers.fetch.load.loader import Loader, LoadRules
from servers.fetch.load.throttling import FREE_BYTES, ByteBudget
from servers.fetch.network.address_policy import Policy, Rules
from servers.fetch.network.client import ClientOptions, open_client
from servers.fetch.pages.fetcher import Fetcher
from servers.fetch.pages.snapshots import PageRequest
from servers.fetch.pages.texts import cut, explain, text_of
from servers.fetch.read.reader import open_reader
from tests.checks.fetch.hostile_answers import Answers
from tests.checks.fetch.hostile_urls import Urls
from tests.checks.fetch.rawsites import opened_raw_site
from tests.checks.fetch.recording import recorded
from tests.checks.fetch.test_urls import Names, assert_allowed
from tests.descriptors import descriptors, settled_descriptors

PATIENCE = 30
FENCED = re.compile(r"<page-(\w+)>[^\n]*\n.*\n</page-\1>", re.DOTALL)
# The lines of an answer that the server itself says, in which a site has its URL and its type at most.
URL = r"https?://[!#-~]{1,560}…?"
LINES = re.compile(
    "|".join(
        (
            rf"{URL} \(\d+; (?:no content type|\"[!#-~]{{1,260}}\"), (?:[a-z0-9_-]+, )?[\d,]+ bytes\)",
            r"fetched [-0-9: ]+UTC(?:, from the cache)?(?:, version [0-9a-f]{8})?",
            rf'redirected to "{URL}"(?:, then "{URL}")*',
            rf'taken from the Markdown that the page names: "{URL}"',
            r"note: [ -~]+",
            r"characters \d+ to \d+[ -~]{1,60}",
            "",
        )
    )
)


async def shown(fetcher: Fetcher, wanted: PageRequest) -> tuple[str, str]:
    """How one fetch ended, and what a model sees of it."""
    with anyio.fail_after(PATIENCE):
        try:
            snapshot = await fetcher.fetch(wanted)
        except FetchError as error:
            return error.code, explain(error)
    return "", text_of(snapshot, cut(snapshot.page.text, 0, 5_000, 100_000))


def check(code: str, text: str) -> None:
    """What a site wrote stands between the marks."""
    outside = FENCED.sub("", text)
    if code:
        assert code in CODES
        assert re.fullmatch(
            rf"{code}: [ -~…]{{1,1000}}\n?(?:the site asks to wait \d+ seconds[ a-z]+)?\n?", outside
        ), text
    else:
        assert all(LINES.fullmatch(line) for line in outside.split("\n")), text


@pytest.mark.timeout(600)
async def test_random_answers_are_fenced_and_lead_to_no_other_host() -> None:
    times = 1_000
    ended: Counter[str] = Counter()
    answers: list[bytes] = []

    with recorded() as reached:
        async with opened_raw_site(lambda _: answers[0]) as port:
            policy = Policy(Rules(allow_private=[f"127.0.0.1:{port}"], allow_port=[port]))
            made = Answers(times, Urls(times, port))
            before = len(settled_descriptors())
            async with open_client(ClientOptions(), policy, Names()) as client, open_reader(1, 10, 256) as reader:
                for number in range(times):
                    answers[:] = [made.answer()]
                    # A new one each time: a site that asks to wait is asked no more.
                    loader = Loader(client, policy, LoadRules("tester/1.0", PATIENCE, ignore_robots=number % 4 > 0))
                    wanted = PageRequest(f"http://127.0.0.1:{port}/{number}")
                    for _ in range(2):  # the second time from the cache, or asked whether it is still so
                        code, text = await shown(Fetcher(loader, reader, ByteBudget(FREE_BYTES)), wanted)
                        check(code, text)
                        ended[code] += 1
            await anyio.wait_all_tasks_blocked()
            assert len(descriptors()) <= before + 2  # what the loop keeps to hear of processes
    assert_allowed(reached, port)
    assert set(ended) >= {"", "bad_response", "status"}
    assert not {"timeout", "busy"} & set(ended)

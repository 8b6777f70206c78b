"""The rows of the fetch servers: the start, the article benchmark, many pages at once, and what stays in memory."""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.checks.benchmarks import targets
from tests.checks.benchmarks.fetch_articles import (
    Score,
    content_of,
    names_of,
    plain,
    score,
    truths_of,
    with_headline,
    words_of,
)
from tests.checks.benchmarks.fetch_marked import characters_and_words, gold_of, page_names, with_captions
from tests.checks.benchmarks.fetch_pages import BOMB_PAGE, ENDLESS_PAGE, NESTED_PAGE, Sites, served
from tests.checks.benchmarks.fetch_peers import OFFICIAL
from tests.checks.benchmarks.machine import Watch, held
from tests.checks.benchmarks.messages import Ask
from tests.checks.benchmarks.peers import Peer
from tests.checks.benchmarks.pipes import Pipes, start_ms
from tests.checks.benchmarks.targets import Measure

ALL = 999_999
"""Characters: as many as either server gives."""
WARM = 12
"""Pages that are read before memory is looked at: enough for every process that reads."""
SHOWN = 1_000
"""Characters of a large text that are given."""
TOGETHER = 50
WORDS = b"This is page"
"""They stand in every ordinary page."""
FEW, MANY = 100, 1_000

Figures = Iterator[tuple[Measure, float]]


def fetch_start_row(peer: Peer, folder: Path) -> Figures:
    """Milliseconds from the start to the answer to `initialize`. Raises Unavailable where `peer` can't run here."""
    yield targets.FETCH_START, start_ms(peer.stdio(folder))


def article_rows(peer: Peer, folder: Path) -> Figures:
    """How well, and how fast, `peer` reads the pages of the article benchmark. Raises Unavailable."""
    names = names_of(folder)
    truths = dict(sorted(truths_of(folder).items()))
    command = peer.stdio(folder)
    with served(folder) as sites:
        found, took = read_pages(command, sites, map(sites.article, names))
        yield from zip(targets.ARTICLES_MARKDOWN, _percent(_pairs(truths, found, plain)), strict=True)
        yield targets.ARTICLES_MS, statistics.median(took)
        if peer is not OFFICIAL:
            [f1, *_] = _percent(_pairs(truths, found, with_headline))
            yield targets.HEADED_F1, f1
            found, took = read_pages(command, sites, map(sites.article, names), format="text")
            yield from zip(targets.ARTICLES_TEXT, _percent(_pairs(truths, found, str)), strict=True)
            yield targets.ARTICLES_TEXT_MS, statistics.median(took)


def marked_rows(peer: Peer, folder: Path) -> Figures:
    """The same of the pages whose main text is marked in them."""
    names = page_names()
    with served(folder) as sites:
        found, took = read_pages(peer.stdio(folder), sites, map(sites.marked, names))
    pairs = _pairs({name: gold_of(name) for name in names}, list(map(with_captions, found)), plain)
    yield from zip(targets.MARKED_TEXTS, _percent(pairs, characters_and_words), strict=True)
    yield targets.MARKED_MS, statistics.median(took)


def read_pages(command: list[str], sites: Sites, urls: Iterable[str], **more: str) -> tuple[list[str], list[float]]:
    """The text of each page, one asked for after the other, and the milliseconds that each took."""
    found, took = [], []
    with Pipes(command) as server:
        server.greet()
        # What is loaded with the first page belongs to no page.
        server.ask(_fetch(sites.ordinary(0), **more))
        for url in urls:
            ask = _fetch(url, b'"content"', **more)
            began = time.perf_counter()
            answer = server.ask(ask)
            took.append(1_000 * (time.perf_counter() - began))
            found.append(content_of(answer))
    return found, took


def _pairs(truths: dict[str, str], found: list[str], text_of: Callable[[str], str]) -> list[tuple[str, str]]:
    return list(zip(truths.values(), map(text_of, found), strict=True))


def _percent(pairs: Iterable[tuple[str, str]], words: Callable[[str], list[str]] = words_of) -> Iterator[float]:
    scored: Score = score(pairs, words)
    return (100 * value for value in scored)


def together_rows(peer: Peer, folder: Path) -> Figures:
    """What many pages take that are asked for at once, three of them hostile: time, and memory while they are read.
    Raises Unavailable."""
    with _warm(peer, folder) as (sites, server):
        began = time.perf_counter()
        _read_together(sites, server)
        yield targets.TOGETHER, 1_000 * (time.perf_counter() - began)
    # Looking at memory takes time itself.
    with _warm(peer, folder) as (sites, server), Watch(server.pid) as watch:
        _read_together(sites, server)
    yield targets.TOGETHER_MEMORY, watch.growth


@contextmanager
def _warm(peer: Peer, folder: Path) -> Iterator[tuple[Sites, Pipes]]:
    with served(folder) as sites, Pipes(peer.stdio(folder)) as server:
        server.greet()
        _expect(server.all_of([_fetch(sites.ordinary(number)) for number in range(WARM)]), WARM)
        yield sites, server


def _read_together(sites: Sites, server: Pipes) -> None:
    slow = [_fetch(sites.slow(number)) for number in range(TOGETHER - 3)]
    # What becomes of the nested page is the server's to decide; the other two can't be read by any.
    hostile = [_fetch(sites.url(target), b"") for target in (NESTED_PAGE, BOMB_PAGE, ENDLESS_PAGE)]
    _expect(server.all_of([*hostile, *slow]), len(slow))


def _expect(answers: list[bytes], expected: int) -> None:
    found = sum(WORDS in answer for answer in answers)
    if found < expected:
        raise ValueError(f"{found} pages were read of {expected}")


def large_rows(peer: Peer, folder: Path) -> Figures:
    """What many large texts take that are asked for at once: time, and all that the server and its readers hold.
    Raises Unavailable."""
    with _warm(peer, folder) as (sites, server), Watch(server.pid) as watch:
        began = time.perf_counter()
        asks = [_fetch(sites.large(number), max_length=SHOWN) for number in range(TOGETHER)]
        _expect(server.all_of(asks), TOGETHER)
        yield targets.LARGE_TEXTS, 1_000 * (time.perf_counter() - began)
    yield targets.LARGE_MEMORY, watch.most


def fetch_growth_row(peer: Peer, folder: Path) -> Figures:
    """What all processes of the server hold after many pages, to what they held after a few. Raises Unavailable."""
    with served(folder) as sites, Pipes(peer.stdio(folder)) as server:
        server.greet()
        for number in range(FEW):
            server.ask(_fetch(sites.ordinary(number)))
        few = held(server.pid)
        for number in range(FEW, MANY):
            server.ask(_fetch(sites.ordinary(number)))
        yield targets.FETCH_GROWTH, held(server.pid) / few


def _fetch(url: str, expected: bytes = WORDS, **more: str | int) -> Ask:
    return Ask("tools/call", {"name": "fetch", "arguments": {"url": url, "max_length": ALL, **more}}, expected)

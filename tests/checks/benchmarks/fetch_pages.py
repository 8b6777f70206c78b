"""The web server that the fetch servers read while they are measured.

python -m tests.checks.benchmarks.fetch_pages FOLDER

It prints its port, and ends with its input. A process of its own, so that it does not share a lock with the client.
"""

import asyncio
import gzip
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from tests.checks.benchmarks.fetch_articles import html_of
from tests.checks.benchmarks.fetch_marked import page_of
from tests.checks.benchmarks.fetch_samples import PARAGRAPHS, article, bomb, endless, nested
from tests.checks.benchmarks.fetch_site import NOT_FOUND, Answer, Request, Site, reply
from tests.checks.benchmarks.peers import ROOT

KINDS_FOLDER, MANUALS_FOLDER = "kinds", "manuals"
"""The names under which WCXB and manuals stand among the other files of a run."""
SLOW_SECONDS = 0.2
BOMB_BLOCKS = 128
"""2 GiB."""
NESTED_PAGE, BOMB_PAGE, ENDLESS_PAGE = "/nested", "/bomb", "/endless"
LARGE = 10_000_000
"""Bytes of a large plain text."""
LINE = "Тексту этого вида нужно два байта на знак, here and there one.\n".encode()
ORDINARY_PARTS = 20
"""How often the five paragraphs stand in an ordinary page: 50 KB."""


class Sites(NamedTuple):
    """Where the pages are."""

    port: int

    def ordinary(self, number: int) -> str:
        """The URL of one of any number of ordinary pages, which differ."""
        return self.url(f"/ordinary/{number}")

    def slow(self, number: int) -> str:
        """The same, of pages that the site thinks about."""
        return self.url(f"/slow/{number}")

    def article(self, name: str) -> str:
        """The URL of a page of the article benchmark."""
        return self.url(f"/article/{name}")

    def marked(self, name: str) -> str:
        """The URL of a page whose main text is marked; what is served has no marks."""
        return self.url(f"/marked/{name}")

    def large(self, number: int) -> str:
        """The URL of one of any number of large plain texts."""
        return self.url(f"/large/{number}")

    def url(self, target: str) -> str:
        """The URL of any page."""
        return f"http://127.0.0.1:{self.port}{target}"


@contextmanager
def served(folder: Path) -> Iterator[Sites]:
    """The web server, for as long as it is needed."""
    command = [sys.executable, "-m", "tests.checks.benchmarks.fetch_pages", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Sites(int(process.stdout.readline()))
        process.stdin.close()


class _Pages:
    """Answers by the first part of what is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def answer(self, request: Request) -> Answer:
        first, _, rest = request.target[1:].partition("/")
        kinds = {
            "article": self._article,
            "kind": self._kind,
            "manual": self._manual,
            "marked": _marked,
            "ordinary": _ordinary,
            "slow": _slow,
            "large": _large,
        }
        return kinds.get(first, _missing)(rest)

    def _article(self, name: str) -> bytes:
        return reply(html_of(self._folder, name))

    def _kind(self, name: str) -> bytes:
        return reply(
            gzip.decompress((self._folder / KINDS_FOLDER / "html" / f"{name}.html.gz").read_bytes()), "text/html"
        )

    def _manual(self, path: str) -> bytes:
        return reply((self._folder / MANUALS_FOLDER / unquote(path)).read_bytes(), "text/html")


def _marked(name: str) -> bytes:
    return reply(page_of(name))


def _ordinary(number: str) -> bytes:
    return reply(article(f"<p>This is page {number}.</p>{PARAGRAPHS * ORDINARY_PARTS}"), ETag=f'"{number}"')


async def _large(number: str) -> AsyncIterator[bytes]:
    yield reply(
        f"This is page {number}.\n".encode() + LINE * ((LARGE - 100) // len(LINE)), "text/plain; charset=utf-8"
    )


async def _slow(number: str) -> AsyncIterator[bytes]:
    await asyncio.sleep(SLOW_SECONDS)
    yield _ordinary(number)


def _missing(_rest: str) -> bytes:
    return NOT_FOUND


async def _serve(folder: Path) -> None:
    pages = {NESTED_PAGE: nested(), BOMB_PAGE: bomb(BOMB_BLOCKS), ENDLESS_PAGE: endless}
    async with Site(pages, otherwise=_Pages(folder).answer) as site:
        print(site.port, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))

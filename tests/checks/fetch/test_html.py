"""Random pages, read by a real worker process in all formats: the result is a clean page."""

import re

import anyio
import pytest

from servers.common.workers.pool import Limits, Pool
from servers.fetch.errors import FetchError
from servers.fetch.read.page import Format
from servers.fetch.read.reader import PAGES, Reader
from tests.checks.fetch.hostile_html import Pages
from tests.checks.fetch.recording import recorded
from tests.descriptors import descriptors, settled_descriptors
from tests.servers.fetch.bodies import loaded

FORMATS: tuple[Format, ...] = ("markdown", "markdown", "text", "html", "json", "links", "metadata")
PATIENCE = 60
# Characters that steer a terminal, are not seen, or turn the direction of what follows.
UNCLEAN = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\u200b\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
LINKED = re.compile(r"(?<!\\)\]\((?:java|data|file|vbs)", re.IGNORECASE)


async def read(reader: Reader, pages: Pages) -> str:
    """How the reading of one page ended: a code, or nothing."""
    body, charset = pages.page()
    wanted = pages.random.choice(FORMATS), pages.section()
    with anyio.fail_after(PATIENCE):
        try:
            page = await reader.read(loaded(body, "text/html", charset), *wanted)
        except FetchError as error:
            if error.code in ("not_found", "bad_argument"):
                return error.code
            raise AssertionError(f"{error}: {wanted}, {charset}, {body!r}") from error
    assert page.kind == "html"
    assert not UNCLEAN.search(page.text), (wanted, charset, body)
    assert not LINKED.search(page.text), (wanted, charset, body)
    return ""


@pytest.mark.timeout(600)
async def test_random_pages_are_read() -> None:
    times = 2_000
    pages, pool = Pages(times), Pool(PAGES, 1, Limits(10, 256))
    ended: list[str] = []
    with recorded() as reached:
        try:
            reader = Reader(pool)
            await reader.warm()
            before = len(settled_descriptors())
            ended = [await read(reader, pages) for _ in range(times)]
            assert len(descriptors()) <= before
            assert len(pool.pids) <= 1
        finally:
            await pool.close()
    assert not reached
    assert ended.count("") > times / 2

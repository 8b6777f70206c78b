"""Snapshots of pages as they were read.

A client continues a page at a character offset, and must get the next piece of the same text, even if the page has
changed. Each client has its own snapshots, so that its pages and requests are not revealed to other clients. A
replaced text is stored for a while as an earlier version, so that changes since then can be shown.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import NamedTuple

import anyio

from ..errors import FetchError
from ..read.page import LoadedPage, Page, RequestedFormat

MAX_CHARACTERS = 4_000_000
"""Maximum number of characters of text, and bytes of images, that are stored. A larger page is stored alone."""
MAX_PAGES = 500
MAX_EARLIER = 2_000_000
"""Maximum number of characters of earlier versions that are stored."""
MAX_EARLIER_VERSIONS = 200
EARLIER_SECONDS = 24 * 3_600.0
"""Seconds for which an earlier version is stored."""

_TIMEOUT_ERROR = FetchError("timeout", "the call ran out of time before this page arrived", "Fetch it by itself.")


class PageRequest(NamedTuple):
    """A page, and the requested part and format of it."""

    url: str
    format: RequestedFormat = "markdown"
    section: str | None = None
    pages: str | None = None
    """The pages of a document; None for all."""

    @property
    def as_markdown(self) -> bool:
        """True if Markdown from the site would be shown unchanged. A section or another format needs the HTML."""
        return self.format == "markdown" and self.section is None and self.pages is None


class Snapshot(NamedTuple):
    """A page as it was read at one time."""

    loaded: LoadedPage
    """The loaded page, without its body."""
    size: int
    """Size of the page's body in bytes."""
    page: Page
    left_out: int = 0
    """Number of characters left out of the page's text by `beginning`."""
    named_by: tuple[str, ...] = ()
    """If this is the Markdown version that another page links to: the URLs of that page, from the requested one to
    the last redirect; otherwise empty."""

    @property
    def weight(self) -> int:
        """The size of the snapshot in a store: characters of text, and bytes of an image."""
        return len(self.page.text) + len(self.page.image)

    @property
    def version(self) -> str:
        """Eight hexadecimal digits that identify the text of the page. Equal texts have equal versions."""
        return hashlib.blake2b(self.page.text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()

    def beginning(self, characters: int) -> "Snapshot":
        """Return the snapshot with only the first `characters` of its text and without its image, so that a large
        page need not stay in memory while others are loaded.
        """
        page = self.page._replace(text=self.page.text[:characters], image=b"")
        return self._replace(page=page, left_out=len(self.page.text) - len(page.text))


class Snapshots:
    """The latest snapshot of each page by client. The least recently used ones are dropped first."""

    def __init__(self, characters: int = MAX_CHARACTERS, pages: int = MAX_PAGES) -> None:
        self._max_weight, self._pages = characters, pages
        self._weight = 0
        self._stored: OrderedDict[tuple[Hashable, PageRequest], Snapshot] = OrderedDict()
        self._earlier = _EarlierVersions()

    def get(self, client: Hashable, request: PageRequest) -> Snapshot | None:
        """Return the stored snapshot of the page."""
        stored = self._stored.get((client, request))
        if stored is not None:
            self._stored.move_to_end((client, request))
        return stored

    def put(self, client: Hashable, request: PageRequest, snapshot: Snapshot) -> None:
        """Store the snapshot, replacing an older one. The least recently used are dropped if there are too many."""
        old = self._stored.get((client, request))
        if old is not None and old.page.text != snapshot.page.text:
            self._earlier.put((client, request, old.version), old.page.text)
        self._drop((client, request))
        self._stored[client, request] = snapshot
        self._weight += snapshot.weight
        while len(self._stored) > 1 and (self._weight > self._max_weight or len(self._stored) > self._pages):
            self._drop(next(iter(self._stored)))

    def earlier(self, client: Hashable, request: PageRequest, version: str) -> str | None:
        """Return the text of a replaced version; None if it has been dropped."""
        return self._earlier.get((client, request, version))

    def recent(self, client: Hashable) -> list[tuple[PageRequest, Snapshot]]:
        """Return the pages that were shown to one client, latest first."""
        return [(request, stored) for (owner, request), stored in reversed(self._stored.items()) if owner == client]

    def _drop(self, key: tuple[Hashable, PageRequest]) -> None:
        dropped = self._stored.pop(key, None)
        if dropped is not None:
            self._weight -= dropped.weight


class _EarlierVersions:
    """Texts that were replaced, by client, page and version, stored for a limited time."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[Hashable, PageRequest, str], tuple[float, str]] = OrderedDict()
        self._characters = 0

    def get(self, key: tuple[Hashable, PageRequest, str]) -> str | None:
        until, text = self._texts.get(key, (0.0, None))
        return text if until > time.monotonic() else None

    def put(self, key: tuple[Hashable, PageRequest, str], text: str) -> None:
        self._drop(key)
        self._texts[key] = time.monotonic() + EARLIER_SECONDS, text
        self._characters += len(text)
        while len(self._texts) > MAX_EARLIER_VERSIONS or self._characters > MAX_EARLIER:
            self._drop(next(iter(self._texts)))

    def _drop(self, key: tuple[Hashable, PageRequest, str]) -> None:
        self._characters -= len(self._texts.pop(key, (0.0, ""))[1])


Outcome = Snapshot | FetchError


async def fetch_all(
    requests: Sequence[PageRequest],
    fetch: Callable[[PageRequest], Awaitable[Snapshot]],
    report_progress: Callable[[int], Awaitable[None]],
    seconds: float,
    characters: int,
) -> list[Outcome]:
    """Return the beginning of each page, or its error, in order. Pages that take more than `seconds` are abandoned.
    `report_progress` is called with the number of finished pages.
    """
    outcomes: list[Outcome] = [_TIMEOUT_ERROR] * len(requests)
    finished = 0

    async def fetch_one(index: int) -> None:
        nonlocal finished
        try:
            outcomes[index] = (await fetch(requests[index])).beginning(characters)
        except FetchError as error:
            outcomes[index] = error
        finished += 1
        await report_progress(finished)

    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as tasks:
            for index in range(len(requests)):
                tasks.start_soon(fetch_one, index)
    return outcomes

"""Reads untrusted pages in other processes, which can be killed. Images need no parsing, and are read in this
process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio

from servers.common.images import find_size
from servers.common.workers.pool import Limits, Pool, Program, WorkerError

from ..errors import FetchError
from .kinds import as_source, check, find_kind
from .page import Format, LoadedPage, Page, RequestedFormat, describe
from .page_answers import make_page

PAGES = Program(f"{__package__}.worker", "page")
_CUT_NOTE = "The site's response ended too early, so its end may be missing. Try again later."


class Reader:
    """Converts loaded pages to the requested format."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def prepare(self) -> None:
        """Start a process, if none is running, and load the modules for HTML in it. Raises WorkerError."""
        await self._pool.warm("html")

    async def warm(self) -> None:
        """Start a process like `prepare`, while a page is being loaded.

        A page that arrives before the process is ready waits for it. Never raises: reading the page will report the
        error.
        """
        with suppress(WorkerError):
            await self.prepare()

    async def read(
        self, loaded: LoadedPage, form: RequestedFormat, section: str | None = None, pages: str | None = None
    ) -> Page:
        """Return the page in the format `form`, or the part of it selected by `section` or `pages`.

        Raises FetchError with code `unsupported_type`, `unreadable`, `not_found` for a section, or `bad_argument` for
        a format, a section or pages that do not fit the page.
        """
        kind = find_kind(loaded.media_type, loaded.body, loaded.url)
        if form == "raw":
            kind, form = as_source(kind), "text"
        check(kind, form, section, pages, len(loaded.body))
        if kind.name == "image":
            return read_image(loaded.body, kind.media_type, form)
        head = {
            "media_type": kind.media_type,
            "charset": loaded.charset,
            "url": loaded.url,
            "format": form,
            "section": section,
            "pages": pages,
        }
        try:
            answer, text = await self._pool.ask(kind.name, head, loaded.body)
        except WorkerError as error:
            raise FetchError(error.code, error.reason) from None
        try:
            page = make_page(answer, text)
        except FetchError as error:
            if loaded.is_cut and error.code == "unreadable":
                raise FetchError("bad_response", "the site's response ended too early") from None
            raise
        return page._replace(notes=(_CUT_NOTE, *page.notes)) if loaded.is_cut else page


@asynccontextmanager
async def open_reader(workers: int, seconds: float, mebibytes: int) -> AsyncIterator[Reader]:
    """Open a reader for the duration of the block, with at most `workers` processes, which are stopped at its end.

    Each page may take `seconds`, and `mebibytes` of memory if the platform can limit that.
    """
    pool = Pool(PAGES, workers, Limits(seconds, mebibytes))
    try:
        yield Reader(pool)
    finally:
        with anyio.CancelScope(shield=True):
            await pool.close()


def read_image(body: bytes, media_type: str, format: Format) -> Page:
    """Return an image, and a description of it."""
    size = find_size(body)
    if format == "metadata":
        width, height = size or (None, None)
        return Page(describe(kind="image", media_type=media_type, width=width, height=height), "image")
    pixels = f", {size[0]} x {size[1]} pixels" if size else ""
    return Page(f"{media_type}{pixels}, {len(body):,} bytes", "image", image=body, image_type=media_type)

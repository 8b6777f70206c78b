"""Reading pages without trusting them: in processes that may be killed, unless there is nothing to parse."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio

from servers.fetch.errors import CODES, FetchError
from servers.fetch.load.loaded import Loaded
from servers.fetch.reading.frames import Head
from servers.fetch.reading.images import read_image
from servers.fetch.reading.kinds import as_source, check, kind_of
from servers.fetch.reading.page import Form, Found, Page, Removed
from servers.fetch.reading.pool import Limits, Pool
from shared.kit.text import join_lines

__all__ = ["Reader", "opened_reader"]


class Reader:
    """Turns what was loaded into what a reader wants of it."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def prepare(self) -> None:
        """Starts a process, where there is none, and has it load what HTML needs. Raises FetchError."""
        await self._pool.warm("html")

    async def warm(self) -> None:
        """The same, while a page is being loaded.

        A page that comes meanwhile waits for just that process. Raises nothing: the page itself will say what fails.
        """
        with suppress(FetchError):
            await self.prepare()

    async def read(self, loaded: Loaded, form: Form, section: str | None = None) -> Page:
        """The page in the format `form`, or the part of it that `section` names.

        Raises FetchError: `unsupported_type`, `unreadable`, `not_found` for a section, and `bad_argument` for a
        format or a section that does not fit the page.
        """
        kind = kind_of(loaded.media_type, loaded.body)
        if form == "raw":
            kind, form = as_source(kind), "text"
        check(kind, form, section, len(loaded.body))
        if kind.name == "image":
            return read_image(loaded.body, kind.media_type, form)
        head = {
            "media_type": kind.media_type,
            "charset": loaded.charset,
            "url": loaded.url,
            "format": form,
            "section": section,
        }
        answer, text = await self._pool.ask(kind.name, head, loaded.body)
        return _page(answer, text)


@asynccontextmanager
async def opened_reader(workers: int, seconds: float, mebibytes: int) -> AsyncIterator[Reader]:
    """A reader for the time of the block, with so many processes at most, which end with it.

    Each page may take `seconds`, and `mebibytes` of memory where the platform can limit that.
    """
    pool = Pool(workers, Limits(seconds, mebibytes))
    try:
        yield Reader(pool)
    finally:
        with anyio.CancelScope(shield=True):
            await pool.close()


def _page(answer: Head, text: bytes) -> Page:
    """The page in an answer, which is believed no more than the page itself."""
    try:
        if "error" in answer:
            code, reason, suggestion, quoted = map(str, answer["error"])
            raise FetchError(code if code in CODES else "unreadable", reason, suggestion, quoted=quoted)
        fields = answer["page"]
        fields["text"] = text.decode()
        fields["found"] = Found(**fields["found"])
        fields["removed"] = Removed(**fields["removed"])
        fields["notes"] = tuple(join_lines(str(note)) for note in fields["notes"])
        return Page(**fields)
    except (LookupError, TypeError, ValueError):
        raise FetchError("unreadable", "the page broke the process that was to read it") from None

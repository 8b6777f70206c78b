"""Reads the texts of documents (PDF, Word, Excel, PowerPoint, OpenDocument, EPUB), in parts like text files.

Converting a document is expensive, and the parts of its text are requested one after another, so the last texts are
cached. A call may select pages or sheets of the document. A cursor ends with `~` and this selection, so that the next
call need not repeat it.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from urllib.parse import quote, unquote

import anyio
from anyio import from_thread

from servers.common.documents.document import DocumentError
from servers.common.documents.texts import MAX_BYTES, DocumentText, DocumentTexts, require_libraries
from shared.program.files.entries import Handle, etag_of

from ..errors import FilesError
from .binary import OpenFile
from .pages import TextRead, read_document_text
from .parts import Part

DOCUMENT_SUFFIXES = (
    *(".pdf", ".docx", ".docm", ".xlsx", ".xlsm", ".pptx", ".pptm", ".odt", ".ods", ".odp", ".epub"),
    *(".doc", ".xls", ".ppt", ".xlsb"),
)
"""Suffixes of file names of documents, in lowercase. Those of the second line can't be read, only reported."""
_MAX_TEXTS = 4
"""Maximum number of cached texts."""
_MAX_CHARACTERS = 8_000_000
"""Maximum number of characters of all cached texts together, unless there is only one."""
_PAGES_SEPARATOR = "~"
_NO_TEXT = "the document contains no text"


class Documents:
    """Converts documents to text, and caches the last texts."""

    def __init__(self) -> None:
        self._converter = DocumentTexts()
        self._cached_texts: OrderedDict[tuple[str, str | None], DocumentText] = OrderedDict()

    async def text(
        self, read: Callable[[], Awaitable[bytes]], etag: str, path: str, pages: str | None = None
    ) -> DocumentText:
        """Return the text of the document with this etag, or of the selected `pages`. `read` returns the bytes of the
        document. Raises FilesError."""
        key = (etag, pages)
        if key not in self._cached_texts:
            try:
                self._cached_texts[key] = await self._converter.read(await read(), pages)
                while len(self._cached_texts) > 1 and (
                    len(self._cached_texts) > _MAX_TEXTS
                    or sum(len(stored.text) for stored in self._cached_texts.values()) > _MAX_CHARACTERS
                ):
                    self._cached_texts.popitem(last=False)
            except DocumentError as error:
                raise FilesError(error.code, path, error.reason, error.suggestion) from None
        self._cached_texts.move_to_end(key)
        return self._cached_texts[key]

    def reader(self) -> Callable[[Handle, float], DocumentText | None]:
        """Return a function that returns the text of an open file; None if the file is not a document, as most ZIP
        archives. It takes a timeout in seconds, must be called in a thread, and raises FilesError.

        Raises FilesError with code `not_installed`.
        """
        try:
            require_libraries()
        except DocumentError as error:
            raise FilesError(error.code, "", error.reason, error.suggestion) from None
        return self._read_in_thread

    def _read_in_thread(self, handle: Handle, timeout: float) -> DocumentText | None:
        data = OpenFile(handle).read(0, MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise FilesError("too_large", "", f"has more than {MAX_BYTES:,} bytes")

        async def body() -> bytes:
            return data

        async def text() -> DocumentText:
            with anyio.fail_after(timeout):
                return await self.text(body, etag_of(handle.stat), "")

        try:
            return from_thread.run(text)
        except TimeoutError:
            raise FilesError("unreadable", "", f"takes longer than {timeout:.0f} s to read") from None
        except FilesError as error:
            if error.code != "unsupported_type":
                raise
            return None

    async def close(self) -> None:
        """Stop the process that reads documents."""
        await self._converter.close()


def has_document_name(name: str) -> bool:
    """Return True if the file name has the suffix of a document."""
    return name.lower().endswith(DOCUMENT_SUFFIXES)


def is_document_part(part: Part) -> bool:
    """Return True if the part selects pages, directly or in its cursor: only documents have pages."""
    return part.pages is not None or (part.cursor is not None and _PAGES_SEPARATOR in part.cursor)


def selected_pages(part: Part, path: str) -> str | None:
    """Return the pages of a document that a part selects, directly or in its cursor. Raises FilesError."""
    if part.cursor is None:
        return part.pages
    pages = unquote(part.cursor.partition(_PAGES_SEPARATOR)[2]) or None
    if part.pages not in (None, pages):
        raise FilesError("bad_range", path, "the cursor belongs to a different selection of pages", "Omit pages.")
    return pages


def part_of_document(document: DocumentText, etag: str, path: str, budget: int, part: Part) -> TextRead:
    """Return part of the text, at most `budget` bytes of JSON. Raises FilesError like `pages.read_text`."""
    if part.encoding is not None:
        raise FilesError("bad_encoding", path, "encoding does not apply to documents", "Omit encoding.")
    pages = selected_pages(part, path)
    cursor = None if part.cursor is None else part.cursor.partition(_PAGES_SEPARATOR)[0]
    read = read_document_text(document.text.encode(), etag, path, budget, part._replace(cursor=cursor))
    notes = document.notes or (() if document.text else (_NO_TEXT,))
    return read._replace(notes=notes, cursor_suffix=_PAGES_SEPARATOR + quote(pages or "", safe=""))
